#include "help.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "console.h"
#include "iosig/base/text.h"

namespace iosig::cli {
namespace {

constexpr std::size_t min_columns = 60, max_columns = 100;
constexpr const char* usual_exit_status =
    "Exit status: 0 done, 1 refused (it says why), 2 wrong usage, 3 bad input, 4 a system call failed.";

std::size_t columns() { return std::clamp(screen_of(STDOUT_FILENO).columns, min_columns, max_columns); }

/// Wraps `line` at blanks to lines of at most `most` columns.
std::string wrapped(std::string_view line, std::size_t most) {
  std::string text;
  std::size_t used = 0;
  for (const std::string_view word : words_of(line)) {
    const bool fits = used + 1 + word.size() <= most;
    if (used > 0) text += fits ? ' ' : '\n';
    used = used > 0 && fits ? used + 1 + word.size() : word.size();
    text += word;
  }
  return text;
}

}  // namespace

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (!option->get_option_text().empty()) return " " + option->get_option_text();
  const bool is_list = option->get_items_expected_max() == CLI::detail::expected_max_vector_size;
  if (!option->nonpositional()) return is_list ? " ..." : "";
  if (option->get_items_expected_max() == 0) return {};
  const std::string type = option->get_type_name();  // NAME:{one,other} for an option with fixed values
  const std::size_t choices = type.find('{');
  const std::string initial = option->get_default_str().empty() ? "" : "=" + option->get_default_str();
  return " " + (choices == std::string::npos ? type : type.substr(choices)) + initial;
}

std::string HelpFormatter::make_option_usage(const CLI::Option* option) const {
  const std::string name = make_option_name(option, true) + (option->get_expected_max() > 1 ? "..." : "");
  return option->get_required() ? name : fmt::format("[{}]", name);
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  return wrapped(option->get_description(), columns() - get_column_width());
}

std::string HelpFormatter::make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const {
  return CLI::detail::find_and_replace(Formatter::make_subcommands(app, mode), "\nSubcommands:\n", "\nCommands:\n");
}

std::string HelpFormatter::make_subcommand(const CLI::App* verb) const {
  std::stringstream out;
  CLI::detail::format_help(out, verb->get_name(), wrapped(verb->get_description(), columns() - get_column_width()),
                           get_column_width());
  return out.str();
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const std::string footer = app->get_footer();
  const std::size_t example = std::min(footer.find("Example:"), footer.size());
  std::string text;
  for (const std::string_view paragraph : split(std::string_view(footer).substr(0, example), '\n'))
    if (!paragraph.empty()) text += wrapped(paragraph, columns()) + "\n";
  if (footer.find("Exit status:") == std::string::npos) text += wrapped(usual_exit_status, columns()) + "\n";
  return fmt::format("{}{}\n", text, footer.substr(example));
}

}  // namespace iosig::cli
