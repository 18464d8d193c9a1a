// Fuzzes the signature grammar: the input's first line is a sigdef, the rest a sig that may use it. Byte 1 and another
// one stand for a parameter of the table with its example, so that parameters which are added later are fuzzed too.
#include "iosig/format/signature_text.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

void check_diagnostics(const ParsedSignature& parsed, std::string_view text) {
  std::size_t last = 0;
  for (const Diagnostic& diagnostic : parsed.diagnostics) {
    const std::string shown = diagnostic_text(diagnostic, text, "here");
    hold(fuzz::names_a_line(shown, "here"), "a finding names its place", shown);
    hold(!diagnostic.message.empty(), "a finding says something");
    hold(diagnostic.at.begin <= diagnostic.at.end && diagnostic.at.end <= text.size(), "the caret is in the text",
         shown);
    hold(!diagnostic.other || diagnostic.other->end <= text.size(), "the second caret is in the text", shown);
    hold(last <= diagnostic.at.begin, "findings are in order", shown);
    last = diagnostic.at.begin;
  }
}

void check_round_trip(const ParsedSignature& parsed) {
  if (!parsed.ok()) return;
  const std::string text = signature_text(parsed.signature);
  const auto again = parse_signature(text);
  hold(again && *again == parsed.signature, "a printed signature is read back", text);
}

std::string with_parameters(std::string_view input) {
  const std::vector<ParameterInfo>& parameters = signature_parameters();
  std::string text;
  for (std::size_t n = 0; n < input.size(); ++n) {
    if (input[n] != 1 || n + 1 == input.size()) {
      text += input[n];
      continue;
    }
    const ParameterInfo& parameter = parameters[static_cast<unsigned char>(input[++n]) % parameters.size()];
    text += parameter.name;
    if (!parameter.example.empty()) text.append("(").append(parameter.example).append(")");
  }
  return text;
}

}  // namespace

void try_one(std::string_view input) {
  const std::string text = with_parameters(input);
  const std::string_view whole = text;
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view definition_text = whole.substr(0, end),
                         sig_text = whole.substr(std::min(end + 1, text.size()));

  const ParsedSignature definition = parse_sigdef(definition_text);
  check_diagnostics(definition, definition_text);
  check_round_trip(definition);
  hold(!definition.ok() || !definition.name.empty(), "a definition has a name");

  SignatureDefinitions definitions;
  if (definition.ok()) definitions.emplace(definition.name, definition.signature);
  const ParsedSignature sig = parse_sig(sig_text, definitions);
  check_diagnostics(sig, sig_text);
  check_round_trip(sig);

  const auto value = parse_signature(sig_text, definitions, "here");
  hold(value.has_value() == sig.ok(), "parse_signature takes what parse_sig takes", sig_text);
  if (!value)
    hold(fuzz::names_a_line(value.error().message, "here"), "a refusal names its place", value.error().message);
}
