// The verbs of the Python package (external.h). They are declared here only for `iosig --help`, completion and the
// manual; the programs parse their own arguments. tests/python/test_repro.py compares the two.

#include "commands.h"
#include "external.h"

namespace iosig::cli {
void add_plot(Verb app, Action& /*action*/) {
  const Verb plot = app.add_verb("plot", "Draw predictions and measurements, as PNG and as a page to explore")
                        .group(python_group)
                        .require_verb();
  plot.footer("Example: iosig plot model --access random");
  const Verb demo = plot.add_verb("demo", "Throughput of every run of the demo, predicted and measured");
  demo.describe_option("FILE", "what `make demo` wrote").required();
  const Verb model = plot.add_verb("model", "Predicted throughput over chunk sizes for every mount point");
  model.describe_option("--storage", "storage description; default: the one that iosig uses").type_name("FILE");
  model.describe_option("--measured", "CSV of bench/grid.py, drawn beside the curves").type_name("FILE");
  model.describe_option("--access", "sequential (default) or random").type_name("ACCESS");
  model.describe_option("--operation", "write (default) or read").type_name("OPERATION");
  const Verb pattern = plot.add_verb("pattern", "Logical offset over position: the accesses that a pattern stands for");
  pattern.describe_option("FILE", "what iosig pattern detect wrote, JSON or binary; - for standard input").required();
  pattern.describe_option("--columns", "names, as of iosig pattern detect --columns").type_name("NAMES");
  pattern.describe_option("--output", "directory for the PNG and the HTML, or one of them, by its name")
      .type_name("DIR");
  const Verb query = plot.add_verb("query", "What `iosig query --plot FILE` draws");
  query.describe_option("ANSWER", "what iosig query --json printed; - for standard input").required();
  const Verb plan = plot.add_verb("plan", "What `iosig plan --plot FILE` draws");
  plan.describe_option("PLAN", "what iosig plan -o wrote; - for standard input").required();
  for (const Verb& verb : {query, plan}) verb.describe_option("--output", "a .png or .html").type_name("FILE");
  for (const Verb& verb : {demo, model})
    verb.describe_option("--output", "directory for the PNG and the HTML").type_name("DIR");
}

void add_report(Verb app, Action& /*action*/) {
  const Verb verb =
      app.add_verb("report", "Show what traces have in one HTML page, with pictures to explore").group(python_group);
  verb.describe_option("TRACE", "directories that 'iosig trace -o' made").type_name("DIR").required();
  verb.describe_option("-o,--output", "the page; TRACE.html in this directory unless given; -: standard output")
      .type_name("FILE");
  verb.describe_option("--files", "only calls on files whose name (or path, if GLOB has a slash) matches")
      .type_name("GLOB");
  verb.footer("Example: iosig report job.trace -o job.html");
}

void add_generate(Verb app, Action& /*action*/) {
  const Verb verb =
      app.add_verb("generate", "Write parallel I/O code from directives in a template").group(python_group);
  verb.describe_option("TEMPLATE", "C, C++ or Fortran with directives: #pragma sigio, !$sigio").type_name("FILE");
  verb.describe_option("-o,--output", "the program with its I/O; standard output unless given").type_name("FILE");
  verb.describe_option("--level", "instead of the files' own: mpiio, pnetcdf, hdf5, netcdf4 or posix")
      .type_name("LEVEL");
  verb.describe_option("--policy",
                       "how data are moved: model, doe2014, two-phase, nonblocking, sieving, packed or chunked")
      .type_name("POLICY");
  verb.describe_option("--ranks", "for which number of ranks the policy is made; 4 unless given").type_name("N");
  verb.describe_option("--assume", "what a name of the program is then; may be repeated").type_name("NAME=VALUE");
  verb.describe_option("--costs", "what --measure found; the user's or the package's unless given").type_name("FILE");
  verb.describe_option("--measure", "measure what I/O costs in DIR, into --output or the user's file").type_name("DIR");
  verb.describe_option("--time-limit", "how long --measure takes for an MPI library; 120 unless given")
      .type_name("SECONDS");
  verb.describe_option("-I,--include", "search this directory for included files; may be repeated").type_name("DIR");
  verb.describe_option("-D,--define", "define NAME as #define does; may be repeated").type_name("NAME[=VALUE]");
  verb.describe_flag("--check", "only report mistakes; status 1 if there are errors");
  verb.describe_flag("--show-model", "print what the directives describe");
  verb.describe_flag("--explain", "print how the data are moved, and why");
  verb.describe_flag("--interactive", "ask for what directives say, show the code, write the directives");
  verb.describe_flag("--json", "print one JSON document, iosig.generate/1");
  verb.footer("Example: iosig generate s3d.c -o s3d_io.c && mpicc s3d_io.c -lpnetcdf");
}

void add_repro(Verb app, Action& /*action*/) {
  const Verb repro = app.add_verb("repro", "Reproduce the papers' tables and figures, with a verdict on each fact")
                         .group(python_group)
                         .require_verb();
  repro.footer("Example: iosig repro run iosig-fig11b --quick");
  const Verb list = repro.add_verb("list", "Every table and figure that can be made again");
  const Verb run = repro.add_verb("run", "Reproduce tables and figures, with a verdict on each fact");
  run.describe_option("ID", "as `iosig repro list` has them, or all")
      .type_name("TEXT")
      .required()
      .check(
          one_of({"all",           "doe-fig13",      "doe-fig14",    "doe-fig6",      "doe-fig7",      "h2dp-fig10",
                  "h2dp-fig11",    "h2dp-fig2",      "h2dp-fig5",    "h2dp-fig6",     "h2dp-fig7",     "h2dp-fig8",
                  "h2dp-fig9",     "h2dp-overheads", "iosig-fig11a", "iosig-fig11b",  "iosig-fig11c",  "iosig-fig12",
                  "iosig-fig6",    "iosig-table2",   "pattern-fig1", "pattern-fig13", "pattern-fig14", "pattern-fig15",
                  "pattern-fig16", "pattern-fig20",  "pattern-fig21"}));
  run.describe_flag("--quick", "smaller sizes and fewer repetitions; the plot says so");
  run.describe_option("--output", "a directory for each id is made in this one; repro-results unless given")
      .type_name("DIR");
  run.describe_option("--source", "what to experiment on: virtual (default), machine or lab").type_name("SOURCE");
  list.describe_flag("--json", "print one JSON document, iosig.repro.list/1");
  run.describe_flag("--json", "print one JSON document, iosig.repro/1");
}

void add_query_sql(Verb query) {
  const Verb sql =
      query.add_verb("sql", "Ask in SQL: accesses, files, durations, processes, calls").group(python_group);
  sql.describe_option("SQL", "one SELECT over the views").required();
  sql.describe_option("TRACE", "traces, or Parquet data sets of them").required();
  sql.describe_flag("--json", "print one JSON document, iosig.sql/1");
  sql.describe_flag("--csv", "print CSV");
  sql.describe_option("--memory", "the most memory that the query takes; 1GB unless given").type_name("TEXT");
  sql.footer("Example: iosig query sql 'SELECT call, count(*) FROM accesses GROUP BY call' job.trace");
}

}  // namespace iosig::cli
