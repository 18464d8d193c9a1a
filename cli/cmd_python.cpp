// The verbs of the Python package (external.h): declared here for `iosig --help`, completion and the manual alone, for
// `iosig-repro` and `iosig-plot` read their own words. tests/python/test_repro.py holds the two against each other.

#include "commands.h"
#include "external.h"
#include "usage.h"

namespace iosig::cli {
namespace {

/// A flag that is described and not read.
void add_flag(CLI::App* verb, const std::string& name, const std::string& description) {
  verb->add_flag(name, description);
}

}  // namespace

void add_plot(CLI::App& app) {
  auto* plot = app.add_subcommand("plot", "Draw predictions and measurements, as PNG and as a page to explore")
                   ->group(python_group)
                   ->require_subcommand(1);
  plot->footer("Example: iosig plot model --access random");
  auto* demo = plot->add_subcommand("demo", "Throughput of every run of the demo, predicted and measured");
  demo->add_option("FILE", "what `make demo` wrote")->required();
  auto* model = plot->add_subcommand("model", "Predicted throughput over chunk sizes for every mount point");
  model->add_option("--storage", "storage description; default: the one that iosig uses")->type_name("FILE");
  model->add_option("--measured", "CSV of bench/grid.py, drawn beside the curves")->type_name("FILE");
  model->add_option("--access", "sequential (default) or random")->type_name("ACCESS");
  model->add_option("--operation", "write (default) or read")->type_name("OPERATION");
  auto* pattern =
      plot->add_subcommand("pattern", "Logical offset over position: the accesses that a pattern stands for");
  pattern->add_option("FILE", "what iosig pattern detect wrote, JSON or binary; - for standard input")->required();
  pattern->add_option("--columns", "names, as of iosig pattern detect --columns")->type_name("NAMES");
  pattern->add_option("--output", "folder for the PNG and the HTML, or one of them, by its name")->type_name("DIR");
  for (CLI::App* verb : {demo, model})
    verb->add_option("--output", "folder for the PNG and the HTML")->type_name("DIR");
}

void add_repro(CLI::App& app) {
  auto* repro = app.add_subcommand("repro", "Make the papers' tables and figures again, with a verdict on each fact")
                    ->group(python_group)
                    ->require_subcommand(1);
  repro->footer("Example: iosig repro run iosig-fig11b --quick");
  auto* list = repro->add_subcommand("list", "Every table and figure that can be made again");
  auto* run = repro->add_subcommand("run", "Makes tables and figures again, and says of each fact whether it holds");
  run->add_option("ID", "as `iosig repro list` has them, or all")
      ->type_name("TEXT")
      ->required()
      ->check(one_of({"all", "iosig-fig11a", "iosig-fig11b", "iosig-fig11c", "iosig-fig12", "iosig-fig6",
                      "iosig-table2", "pattern-fig1", "pattern-fig16", "pattern-fig20"}));
  add_flag(run, "--quick", "smaller sizes and fewer repetitions; the plot says so");
  run->add_option("--output", "a folder for each id is made in this one; repro-results unless given")->type_name("DIR");
  run->add_option("--source", "what to experiment on: virtual (default), machine or lab")->type_name("SOURCE");
  add_flag(list, "--json", "print one JSON document, iosig.repro.list/1");
  add_flag(run, "--json", "print one JSON document, iosig.repro/1");
}

}  // namespace iosig::cli
