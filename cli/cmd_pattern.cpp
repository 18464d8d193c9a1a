// `iosig pattern`: detects patterns in sequences of vectors, merges the patterns of many processes, expands patterns,
// and looks up byte ranges in them.

#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "commands.h"
#include "input.h"
#include "iosig/analyze/access_detector.h"
#include "iosig/analyze/detect_paper.h"
#include "iosig/analyze/merge.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/pattern_text.h"
#include "iosig/format/vectors_text.h"
#include "iosig/model/pattern_cursor.h"
#include "pattern_ids.h"
#include "pattern_lookup.h"
#include "pattern_plot.h"

namespace iosig::cli {
namespace {

struct PatternArguments {
  std::string file, algorithm = "nest", output;
  std::optional<std::string> columns;
  std::uint32_t window = 0;  ///< 0: the algorithm's default
  std::string offset, length;
  std::vector<std::string> files;  ///< inputs of merge
  std::string ids;
  PlotOptions plot;
};

/// Returns the number of columns if --columns is a number, else 0.
std::uint32_t unnamed_columns(const PatternArguments& options) {
  const std::string text = options.columns.value_or("");
  return text.size() == 1 && text[0] >= '1' && text[0] <= '0' + static_cast<char>(max_columns)
             ? static_cast<std::uint32_t>(text[0] - '0')
             : 0;
}

/// Returns the column names in --columns; none if it is absent or a number.
Result<std::vector<std::string>> names_given(const PatternArguments& options) {
  if (!options.columns || unnamed_columns(options) > 0) return std::vector<std::string>{};
  auto names = parse_columns(*options.columns);
  if (!names) return fail(ErrorKind::usage, "--columns: {}", names.error().message);
  return names;
}

/// Refuses an output that would replace an input or another output. Must be called before the input is read.
Result<void> check_outputs(const PatternArguments& options) {
  const std::string& picture = options.plot.picture;
  if (!picture.empty() && (picture == options.output || is_same_file(picture, options.output)))
    return fail(ErrorKind::usage, "--output and --plot both name '{}'", printable(picture));
  std::vector<std::string> inputs = options.files;
  inputs.push_back(options.file);
  for (const std::string& output : {options.output, picture})
    for (const std::string& input : inputs)
      if (is_same_file(output, input))
        return fail(ErrorKind::usage, "'{}' is the input too; name another file for the output", printable(output));
  return {};
}

// ---- reading ------------------------------------------------------------------------------------------------------

/// Passes each line of `file` to `take`. An error of `take` stops the reading.
Result<void> for_each_line(const std::string& file, TakePart take) {
  LineCutter cutter(std::move(take));
  return for_each_part(file, [&](std::string_view part) { return cutter(part); });
}

/// Reads a description in either form. Applies the names in --columns unless the description has names.
Result<Pattern> described(const std::string& file, const PatternArguments& options) {
  const auto given = names_given(options);
  if (!given) return pass_on(given.error());
  const auto text = whole_input(file);
  if (!text) return pass_on(text.error());
  auto pattern = pattern_from_text(*text, shown_name(file));
  if (!pattern) return pattern;
  const auto names = names_in(*pattern, *given);
  if (!names) return fail(names.error().kind, "{}: --columns: {}", shown_name(file), names.error().message);
  set_column_names(*pattern, *names);
  return pattern;
}

// ---- showing --------------------------------------------------------------------------------------------------------

/// Prints a description, or writes it to the file of --output. `more`: additional members for --json.
int show(const Pattern& pattern, const PatternArguments& options, Console& console,
         const nlohmann::ordered_json& more = nlohmann::ordered_json::object()) {
  const std::vector<std::string> names = column_names(pattern);
  const std::vector<std::uint8_t> bytes = pattern_bytes(pattern);
  if (!options.output.empty()) {
    const auto written = write_output(options.output, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!written) return console.fail(written.error());
  }
  if (console.json) {
    nlohmann::ordered_json document = pattern_json(pattern);
    document.update(more);
    console.say_json(pattern_schema, document);
    return options.plot.is_wanted ? draw_plot(options.plot, pattern, names, console) : static_cast<int>(yes);
  }
  const std::uint64_t count = pattern.count();
  console.say(fmt::format("{} vector{} as {} term{}, {} exception{}: {} bytes", count, count == 1 ? "" : "s",
                          pattern.terms.size(), pattern.terms.size() == 1 ? "" : "s",
                          pattern.exception_positions.size(), pattern.exception_positions.size() == 1 ? "" : "s",
                          bytes.size()));
  if (count > 0) console.say(pattern_text(pattern, names));
  return options.plot.is_wanted ? draw_plot(options.plot, pattern, names, console) : static_cast<int>(yes);
}

// ---- detect -------------------------------------------------------------------------------------------------------

Result<Pattern> nest_pattern(const PatternArguments& options, VectorLines& lines,
                             const std::vector<std::string>& names) {
  DetectOptions nest{.columns = lines.columns()};
  if (options.window > 0) nest.window = options.window;
  AccessDetector detector(nest, access_columns(names));
  std::array<std::int64_t, max_columns> vector{};
  const std::span<const std::int64_t> values(vector.data(), lines.columns());
  auto read = for_each_line(options.file, [&](std::string_view line) -> Result<void> {
    const auto found = lines.read(line, vector);
    if (!found) return pass_on(found.error());
    if (*found) detector.push(values);
    return {};
  });
  if (!read) return pass_on(std::move(read.error()));
  return detector.finish([](const Pattern& pattern) { return pattern_bytes(pattern).size(); });
}

Result<Pattern> paper_pattern(const PatternArguments& options, VectorLines& lines) {
  PaperOptions paper{.columns = lines.columns()};
  if (options.window > 0) paper.window = options.window;
  std::vector<std::int64_t> vectors;
  std::array<std::int64_t, max_columns> vector{};
  auto read = for_each_line(options.file, [&](std::string_view line) -> Result<void> {
    const auto found = lines.read(line, vector);
    if (!found) return pass_on(found.error());
    if (*found) vectors.insert(vectors.end(), vector.begin(), vector.begin() + lines.columns());
    return {};
  });
  if (!read) return pass_on(std::move(read.error()));
  return detect_paper(vectors, paper);
}

int run_detect(PatternArguments& options, Console& console) {
  if (const auto sound = check_plot(options.plot, options.file, "detect", console.json); !sound)
    return console.fail(sound.error());
  if (std::error_code ignored; std::filesystem::is_directory(options.file, ignored))
    return console.fail(
        {ErrorKind::usage,
         fmt::format("'{0}' is a directory; if it is a trace: iosig pattern trace {0}", printable(options.file))});
  if (const auto sound = check_outputs(options); !sound) return console.fail(sound.error());
  const auto names = names_given(options);
  if (!names) return console.fail(names.error());
  VectorLines lines(*names, shown_name(options.file), std::max(unnamed_columns(options), 1U));
  auto pattern = options.algorithm == "paper" ? paper_pattern(options, lines) : nest_pattern(options, lines, *names);
  if (!pattern) return console.fail(pattern.error());
  set_column_names(*pattern, *names);
  return show(*pattern, options, console);
}

// ---- expand -------------------------------------------------------------------------------------------------------

int run_expand(PatternArguments& options, Console& console) {
  if (const auto sound = check_plot(options.plot, options.file, "expand", console.json); !sound)
    return console.fail(sound.error());
  if (const auto sound = check_outputs(options); !sound) return console.fail(sound.error());
  const auto pattern = described(options.file, options);
  if (!pattern) return console.fail(pattern.error());
  if (options.plot.is_wanted) return draw_plot(options.plot, *pattern, column_names(*pattern), console);
  PatternCursor cursor(*pattern);
  std::array<std::int64_t, max_columns> vector{};
  std::string text;
  const auto write = [&]() -> Result<void> {
    auto written = write_all(STDOUT_FILENO, text, "standard output");
    text.clear();
    return written;
  };
  while (cursor.next(vector)) {
    for (std::uint32_t column = 0; column < pattern->columns; ++column) {
      if (column > 0) text += ' ';
      const fmt::format_int digits(vector[column]);
      text.append(digits.data(), digits.size());
    }
    text += '\n';
    if (text.size() < (1 << 16)) continue;
    if (auto written = write(); !written) return console.fail(written.error());
  }
  if (auto written = write(); !written) return console.fail(written.error());
  return yes;
}

// ---- merge --------------------------------------------------------------------------------------------------------

int run_merge(const PatternArguments& options, Console& console) {
  if (const auto sound = check_outputs(options); !sound) return console.fail(sound.error());
  const auto known = process_ids(options.ids, options.files);
  if (!known) return console.fail(known.error());
  std::vector<Pattern> patterns;
  for (const std::string& file : options.files) {
    auto pattern = described(file, options);
    if (!pattern) return console.fail(pattern.error());
    if (pattern->columns == 4 && pattern->kinds[3] != Column::sequence)
      return console.fail(
          {ErrorKind::bad_input,
           fmt::format("{}: the fourth column is {}; expected 3 columns, or a sequence", shown_name(file),
                       pattern->kinds[3] == Column::any ? "not named; --columns may say what it is"
                                                        : name_of(pattern->kinds[3]))});
    patterns.push_back(std::move(*pattern));
  }
  std::vector<std::string> sources;
  for (const std::string& file : options.files) sources.push_back(shown_name(file));
  std::vector<LocalPattern> locals;
  for (std::size_t n = 0; n < patterns.size(); ++n)
    locals.push_back({.pattern = &patterns[n], .id = known->ids[n], .source = sources[n]});
  const auto merged = merge_patterns(locals);
  if (!merged) return console.fail(merged.error());
  if (known->from_names)
    console.note(fmt::format("ids are the numbers in the files' names: {}", ids_text(*known, options.files)));
  if (merged->interleaved > 0)
    console.note(
        fmt::format("{} of {} accesses overlap others at the same time, or are among such ones: they were put "
                    "in order one by one",
                    merged->interleaved, merged->pattern.count()));
  return show(merged->pattern, options, console, {{"ids", known->ids}, {"interleaved", merged->interleaved}});
}

// ---- lookup -------------------------------------------------------------------------------------------------------

int run_lookup(const PatternArguments& options, Console& console) {
  const auto offset = parse_bytes(options.offset);
  if (!offset) return console.fail({ErrorKind::usage, fmt::format("OFFSET: {}", offset.error().message)});
  const auto length = parse_bytes(options.length);
  if (!length) return console.fail({ErrorKind::usage, fmt::format("LENGTH: {}", length.error().message)});
  const auto pattern = described(options.file, options);
  if (!pattern) return console.fail(pattern.error());
  return show_pieces(*pattern, column_names(*pattern), shown_name(options.file), static_cast<std::int64_t>(*offset),
                     static_cast<std::int64_t>(*length), console);
}

}  // namespace

void add_pattern(Verb app, Action& action) {
  const Verb pattern = app.add_verb("pattern", "Find the structure in a sequence of accesses, without loss");
  pattern.require_verb();
  pattern.footer("Example: seq 0 4096 1000000 | iosig pattern detect -");
  const auto options = std::make_shared<PatternArguments>();
  const Verb detect = pattern.add_verb("detect", "Describe vectors, one a line, as loop nests");
  detect.add_option("FILE", options->file, "white-space-separated integers; - for standard input");
  detect
      .add_option("--columns", options->columns,
                  "some of logical,length,physical,id,sequence, or how many columns of any integers; 1 unless given")
      .type_name("NAMES");
  detect
      .add_option("--algorithm", options->algorithm,
                  "nest, or the paper's Algorithm 1, for comparison; nest unless given")
      .check(one_of({"nest", "paper"}))
      .type_name("NAME");
  detect.add_option("--window", options->window, "longest body of a loop; 32 for nest and 64 for paper unless given")
      .check(count_between(1, 1024))
      .type_name("N");
  detect.add_option("--output", options->output, "also write the binary form, which takes the fewest bytes")
      .type_name("FILE");
  add_plot_option(detect, options->plot);
  detect.footer("Example: iosig pattern detect --columns logical,length trace.txt");
  detect.when_chosen(action, pattern_schema, [options](Console& console) { return run_detect(*options, console); });

  const Verb expand = pattern.add_verb("expand", "Print the vectors that a description stands for");
  expand.add_option("FILE", options->file, "a description, JSON or binary; - for standard input");
  add_plot_option(expand, options->plot);
  expand.footer("Example: iosig pattern detect --json trace.txt | iosig pattern expand - | cmp - trace.txt");
  expand.when_chosen(action, "", [options](Console& console) { return run_expand(*options, console); });

  const Verb merge = pattern.add_verb("merge", "Fold the descriptions of many processes into one");
  merge.add_option("FILE", options->files, "a description for each process, JSON or binary").required();
  merge
      .add_option("--ids", options->ids,
                  "ids of the processes, in order of the files; the numbers in which the files' names differ, or "
                  "0,1,2,..., unless given")
      .type_name("N,...");
  merge
      .add_option("--columns", options->columns,
                  "logical,length,physical[,sequence], where the descriptions do not say it themselves")
      .type_name("NAMES");
  merge.add_option("--output", options->output, "also write the binary form").type_name("FILE");
  merge.footer("Example: iosig pattern merge rank*.pattern");
  merge.when_chosen(action, pattern_schema, [options](Console& console) { return run_merge(*options, console); });

  const Verb lookup = pattern.add_verb("lookup", "Say where the bytes of a logical file were written");
  lookup.add_option("FILE", options->file, "a description, JSON or binary; - for standard input").required();
  lookup.add_option("OFFSET", options->offset, "first byte of the logical file, e.g. 40000 or 4KB").required();
  lookup.add_option("LENGTH", options->length, "how many bytes, e.g. 6000 or 1MB").required();
  lookup
      .add_option("--columns", options->columns,
                  "columns of the description, where it does not say so itself; logical,length,physical,id, or the "
                  "first three, unless given")
      .type_name("NAMES");
  lookup.footer("Example: iosig pattern lookup trace.pattern 40000 6000");
  lookup.when_chosen(action, pattern_lookup_schema,
                     [options](Console& console) { return run_lookup(*options, console); });

  add_pattern_trace(pattern, action);
}

}  // namespace iosig::cli
