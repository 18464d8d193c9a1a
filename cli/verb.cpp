#include "verb.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "iosig/base/text.h"

namespace iosig::cli {
namespace {

std::string expected(std::string_view value, std::string_view what) {
  return fmt::format("'{}': expected {}", printable(value), what);
}

}  // namespace

Check one_of(std::vector<std::string> choices) {
  const std::string shown = fmt::format("{{{}}}", fmt::join(choices, ","));
  return {[choices = std::move(choices)](const std::string& value) -> std::string {
            if (std::ranges::find(choices, value) != choices.end()) return {};
            const std::span most(choices.data(), choices.size() - 1);
            return expected(value, fmt::format("{} or {}", fmt::join(most, ", "), choices.back()));
          },
          shown};
}

Check between(double min, double max) {
  return {[=](const std::string& value) -> std::string {
            double number = 0;
            if (CLI::detail::lexical_cast(value, number) && number >= min && number <= max) return {};
            return expected(value, fmt::format("a number from {} to {}", min, max));
          },
          ""};
}

Check count_between(std::uint64_t min, std::uint64_t max) {
  return {[=](const std::string& value) -> std::string {
            const auto number = parse_count<std::uint64_t>(value);
            if (number && *number >= min && *number <= max) return {};
            return expected(value, fmt::format("a whole number from {} to {}", min, max));
          },
          ""};
}

Option Option::required() const { return Option(option_->required()); }
Option Option::type_name(const std::string& name) const { return Option(option_->type_name(name)); }
Option Option::option_text(const std::string& text) const { return Option(option_->option_text(text)); }
Option Option::check(const Check& check) const {
  return Option(option_->check({[find = check.find_fault](std::string& value) { return find(value); }, check.choices}));
}
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
Option Option::excludes(const std::string& name) const { return Option(option_->excludes(name)); }
Option Option::takes(int min, int max) const { return Option(option_->expected(min, max)); }
Option Option::repeatable() const { return Option(option_->allow_extra_args(false)); }
Option Option::shows_default() const { return Option(option_->capture_default_str()); }
Option Option::group(const std::string& heading) const { return Option(option_->group(heading)); }

Verb Verb::add_verb(const std::string& name, const std::string& description) const {
  return Verb(*app_->add_subcommand(name, description));
}

Option Verb::add_option(const std::string& name, std::string& value, const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}
Option Verb::add_option(const std::string& name, std::optional<std::string>& value,
                        const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}
Option Verb::add_option(const std::string& name, std::optional<std::uint32_t>& value,
                        const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}
Option Verb::add_option(const std::string& name, std::vector<std::string>& value,
                        const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}
Option Verb::add_option(const std::string& name, std::uint64_t& value, const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}
Option Verb::add_option(const std::string& name, std::int64_t& value, const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}
Option Verb::add_option(const std::string& name, std::uint32_t& value, const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}
Option Verb::add_option(const std::string& name, double& value, const std::string& description) const {
  return Option(app_->add_option(name, value, description));
}
Option Verb::add_option(const std::string& name, std::function<void(const std::string&)> take,
                        const std::string& description) const {
  return Option(app_->add_option_function<std::string>(name, take, description));
}
Option Verb::add_flag(const std::string& name, bool& value, const std::string& description) const {
  return Option(app_->add_flag(name, value, description));
}
Option Verb::add_flag_with_value(const std::string& name, std::string& value, const std::string& usual,
                                 const std::string& description) const {
  return Option(app_->add_flag(fmt::format("{}{{{}}}", name, usual), value, description));
}
Option Verb::describe_option(const std::string& name, const std::string& description) const {
  return Option(app_->add_option(name, description));
}
Option Verb::describe_flag(const std::string& name, const std::string& description) const {
  return Option(app_->add_flag(name, description));
}

Verb Verb::footer(const std::string& text) const { return Verb(*app_->footer(text)); }
Verb Verb::require_verb() const { return Verb(*app_->require_subcommand(1)); }
Verb Verb::group(const std::string& heading) const { return Verb(*app_->group(heading)); }

void Verb::when_chosen(Action& action, std::string_view document, Action run) const {
  const auto json = std::make_shared<bool>(false);
  if (!document.empty()) add_flag("--json", *json, fmt::format("print one JSON document, {}", document));
  app_->callback([=, app = app_, &action, run = std::move(run)] {
    if (!app->get_subcommands().empty()) return;  // one of its verbs was chosen
    action = [=](Console& console) {
      console.json = *json;
      return run(console);
    };
  });
}

}  // namespace iosig::cli
