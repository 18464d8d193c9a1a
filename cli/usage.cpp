#include "usage.h"

#include <fmt/format.h>

#include <algorithm>

#include "iosig/base/text.h"

namespace iosig::cli {
namespace {

/// The verb on the command line, or its parent if that has a word that it does not know; and its full name: "iosig
/// container ls".
struct Call {
  const CLI::App* verb;
  std::string command;
};

/// Returns the words that no option, argument or verb took, up to "--": what follows is a program's.
std::vector<std::string> left_over(const CLI::App& app, bool of_verbs_too = false) {
  std::vector<std::string> words = app.remaining(of_verbs_too);
  words.erase(std::ranges::find(words, "--"), words.end());
  return words;
}

Call call_of(const CLI::App& root) {
  Call call{&root, root.get_name()};
  while (!call.verb->get_subcommands().empty() && left_over(*call.verb).empty()) {
    call.verb = call.verb->get_subcommands().front();
    call.command += " " + call.verb->get_name();
  }
  return call;
}

std::string with_help(const std::string& message, const std::string& command) {
  return fmt::format("{} '{} --help'", message + (message.ends_with('?') ? " See" : "; see"), command);
}

std::string with_suggestion(const std::string& message, std::string_view typed, const std::vector<std::string>& known) {
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view near = nearest_name(typed, names);
  return near.empty() ? message : fmt::format("{}. Did you mean '{}'?", message, near);
}

std::string label(const CLI::Option& option) { return option.get_name(!option.nonpositional()); }

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : shown_verbs(app)) names.push_back(verb->get_name());
  return names;
}

/// Returns the first word that belongs to no option, argument or verb; "" if there is none.
std::string unknown_word(const CLI::App& root, const CLI::App& verb, bool asks_for_help) {
  const std::vector<std::string> words = left_over(root, true);
  if (words.empty()) return {};
  const std::string word = words.front().substr(0, words.front().find('='));
  if (word.size() > 1 && word.starts_with('-')) {
    if (asks_for_help) return {};
    std::vector<std::string> known;
    for (const CLI::Option* option : verb.get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    return with_suggestion(fmt::format("unknown option '{}'", printable(word)), word, known);
  }
  if (const auto names = verb_names(verb); !names.empty())
    return with_suggestion(fmt::format("unknown command '{}'", printable(words.front())), words.front(), names);
  if (asks_for_help) return {};
  std::vector<std::string> arguments;
  for (const CLI::Option* option : verb.get_options())
    if (!option->nonpositional()) arguments.push_back(label(*option));
  return fmt::format("unexpected argument '{}': expected {}", printable(words.front()),
                     arguments.empty() ? "none" : fmt::format("only {}", fmt::join(arguments, " ")));
}

std::string missing(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options())
    if (option->get_required() && option->count() == 0)
      return fmt::format("{} is required: {}", label(*option), option->get_description());
  return fmt::format("a command is required: {}", fmt::join(verb_names(verb), ", "));
}

std::string contradiction(const CLI::App& verb) {
  for (const CLI::Option* option : verb.get_options())
    for (const CLI::Option* other : option->get_excludes())
      if (option->count() > 0 && other->count() > 0)
        return fmt::format("{} and {} cannot be given together", label(*option), label(*other));
  return "these options cannot be given together";
}

/// Returns the option with the invalid value. CLI11 identifies it only by the beginning of its message.
const CLI::Option* faulty_option(const CLI::App& verb, std::string_view what) {
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (what.starts_with(name + ":") || what.starts_with("Could not convert: " + name + " =")) return option;
  }
  return nullptr;
}

std::string wrong_value(const CLI::Option& option, CLI::ExitCodes kind, std::string_view what) {
  const std::string name = label(option);
  if (is_flag(option)) return fmt::format("{} takes no value", name);
  if (kind == CLI::ExitCodes::ValidationError)  // the message comes from Check: "NAME: 'value': expected ..."
    return fmt::format("{}{}", name, what.substr(option.get_name().size() + 1));
  if (kind == CLI::ExitCodes::ConversionError)
    return fmt::format("{} '{}': expected a number", name, printable(option.results().back()));
  if (option.count() > 1) return fmt::format("{} is given {} times: expected once", name, option.count());
  return fmt::format("{} needs a value: {}", name, option.get_description());
}

std::string sentence(const CLI::App& root, const CLI::App& verb, const CLI::ParseError& error) {
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  if (std::string unknown = unknown_word(root, verb, kind == CLI::ExitCodes::Success); !unknown.empty()) return unknown;
  switch (kind) {
    case CLI::ExitCodes::Success: return {};
    case CLI::ExitCodes::RequiredError: return missing(verb);
    case CLI::ExitCodes::ExcludesError: return contradiction(verb);
    default:
      const CLI::Option* option = faulty_option(verb, error.what());
      return option != nullptr ? wrong_value(*option, kind, error.what()) : error.what();
  }
}

}  // namespace

std::vector<const CLI::App*> shown_verbs(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

Error wrong_call(const CLI::App& root, const CLI::ParseError& error) {
  const Call call = call_of(root);
  const std::string message = sentence(root, *call.verb, error);
  return {ErrorKind::usage, message.empty() ? message : with_help(message, call.command)};
}

Result<void> check_values(const CLI::App& root) {
  const Call call = call_of(root);
  for (const CLI::Option* option : call.verb->get_options())
    if (option->nonpositional() && option->get_expected_min() > 0 && option->count() > 0 &&
        std::ranges::count(option->results(), "") > 0)
      return fail(
          ErrorKind::usage, "{}",
          with_help(fmt::format("{} is empty: give it a value or leave it out", option->get_name()), call.command));
  return {};
}

}  // namespace iosig::cli
