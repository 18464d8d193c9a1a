// A verb's options and arguments. The parser is CLI11's; a file that reads its header compiles for seconds longer, so
// only those few do that parse the command line or print it (usage.h, help.h).
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

/// What a value must be.
struct Check {
  std::function<std::string(const std::string& value)> find_fault;  ///< "": none; else "'value': expected ..."
  std::string choices;                                              ///< "{one,other}", for the help; may be empty
};
[[nodiscard]] Check one_of(std::vector<std::string> choices);
[[nodiscard]] Check between(double min, double max);
/// A whole number; without this CLI11 takes -1 for the largest one.
[[nodiscard]] Check count_between(std::uint64_t min, std::uint64_t max);

/// An option, flag or argument that a verb has. Each function returns the same one, for the next.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option required() const;
  /// The name of the value in the help.
  Option type_name(const std::string& name) const;
  /// The whole text behind the option or argument in the help.
  Option option_text(const std::string& text) const;
  Option check(const Check& check) const;
  Option excludes(Option other) const;
  Option excludes(const std::string& name) const;
  /// How many values one occurrence takes; without it one, or any number for a list.
  Option takes(int min, int max) const;
  /// Each occurrence adds one value to the list, and the words after it are not taken.
  Option repeatable() const;
  /// The help shows the present value as the default.
  Option shows_default() const;
  Option group(const std::string& heading) const;

 private:
  CLI::Option* option_;
};

/// Set by the verb that was chosen; main runs it after parsing and returns its exit status.
using Action = std::function<int(Console&)>;

/// A verb, or the command itself, whose verbs are below it.
class Verb {
 public:
  explicit Verb(CLI::App& app) : app_(&app) {}

  [[nodiscard]] Verb add_verb(const std::string& name, const std::string& description) const;
  /// `name`: "--option", "-o,--option", or "ARGUMENT". `value` must outlive the parsing, as must what `take` refers to.
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
  /// For the help alone: another program reads them.
  Option describe_option(const std::string& name, const std::string& description) const;
  Option describe_flag(const std::string& name, const std::string& description) const;

  /// Below the options in the help: what else is to be said, then "Example: ...".
  Verb footer(const std::string& text) const;
  Verb require_verb() const;
  /// The heading in the list of verbs; empty: not listed.
  Verb group(const std::string& heading) const;

  /// Makes `run` the action once this verb is chosen. `document`: the schema that --json prints; empty: there is no
  /// --json.
  void when_chosen(Action& action, std::string_view document, Action run) const;

  [[nodiscard]] CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

}  // namespace iosig::cli
