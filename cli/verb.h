// Options and arguments of a verb, on top of CLI11. Including CLI11's header costs seconds of compile time, so only the
// files that parse or print the command line do it (usage.h, help.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "console.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace iosig::cli {

/// Validates an option value.
struct Check {
  std::function<std::string(const std::string& value)> find_fault;  ///< "": valid; else "'value': expected ..."
  std::string choices;                                              ///< "{one,other}", for the help; may be empty
};
[[nodiscard]] Check one_of(std::vector<std::string> choices);
[[nodiscard]] Check between(double min, double max);
/// Requires an integer in the range; CLI11 alone takes -1 for the largest one.
[[nodiscard]] Check count_between(std::uint64_t min, std::uint64_t max);

/// An option, flag or argument of a verb. Each function returns the same option, for chaining.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required() const;
  /// Sets the name of the value in the help.
  Option type_name(const std::string& name) const;
  /// Sets the whole text after the option or argument in the help.
  Option option_text(const std::string& text) const;
  Option check(const Check& check) const;
  Option excludes(Option other) const;
  Option excludes(const std::string& name) const;
  /// Sets how many values one occurrence takes. Default: one, or any number for a list.
  Option takes(int min, int max) const;
  /// Each occurrence takes one value; it may be repeated to fill the list.
  Option repeatable() const;
  /// The help shows the current value as the default.
  Option shows_default() const;
  Option group(const std::string& heading) const;

 private:
  CLI::Option* option_;
};

/// The chosen verb sets it; main runs it after parsing and returns its exit status.
using Action = std::function<int(Console&)>;

/// A verb, or the root command, which has the verbs as children.
class Verb {
 public:
  explicit Verb(CLI::App& app) : app_(&app) {}

  [[nodiscard]] Verb add_verb(const std::string& name, const std::string& description) const;
  /// `name`: "--option", "-o,--option", or "ARGUMENT". `value`, and everything `take` refers to, must outlive the
  /// parsing.
  Option add_option(const std::string& name, std::string& value, const std::string& description) const;
  Option add_option(const std::string& name, std::optional<std::string>& value, const std::string& description) const;
  Option add_option(const std::string& name, std::optional<std::uint32_t>& value, const std::string& description) const;
  Option add_option(const std::string& name, std::vector<std::string>& value, const std::string& description) const;
  Option add_option(const std::string& name, std::uint64_t& value, const std::string& description) const;
  Option add_option(const std::string& name, std::int64_t& value, const std::string& description) const;
  Option add_option(const std::string& name, std::uint32_t& value, const std::string& description) const;
  Option add_option(const std::string& name, double& value, const std::string& description) const;
  Option add_option(const std::string& name, std::function<void(const std::string&)> take,
                    const std::string& description) const;
  Option add_flag(const std::string& name, bool& value, const std::string& description) const;
  /// A flag that may be given a value, as `--name=VALUE` alone; without one it is `usual`. Unlike an option it never
  /// takes the next argument.
  Option add_flag_with_value(const std::string& name, std::string& value, const std::string& usual,
                             const std::string& description) const;
  /// Only for the help: another program parses these options.
  Option describe_option(const std::string& name, const std::string& description) const;
  Option describe_flag(const std::string& name, const std::string& description) const;

  /// Sets the help text below the options: remarks, then "Example: ...".
  Verb footer(const std::string& text) const;
  Verb require_verb() const;
  /// Sets the heading in the list of verbs; empty: the verb is hidden.
  Verb group(const std::string& heading) const;

  /// Sets `run` as the action if this verb is chosen. `document`: the schema that --json prints; empty: no --json.
  void when_chosen(Action& action, std::string_view document, Action run) const;

  [[nodiscard]] CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

}  // namespace iosig::cli
