#include "directives.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/check/fortran_text.h"
#include "iosig/check/include_lines.h"
#include "iosig/check/source_text.h"
#include "raise.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace iosig::python {
namespace {

/// A text of the source, whose bytes need not be UTF-8.
nb::object text_object(std::string_view text) {
  return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

nb::dict position_dict(const SourcePosition& at) {
  nb::dict made;
  made["file"] = text_object(at.file);
  made["line"] = at.line;
  made["column"] = at.column;
  made["end_column"] = at.end_column;
  made["line_text"] = text_object(at.line_text);
  return made;
}

nb::dict finding_dict(const SourceFinding& finding) {
  nb::dict made = position_dict(finding.at);
  made["severity"] = finding.severity == Diagnostic::Severity::error ? "error" : "warning";
  made["rule"] = text_object(finding.rule);
  const std::string hint = finding.suggestion.empty() ? "" : "; did you mean '" + finding.suggestion + "'?";
  made["message"] = text_object(finding.message + hint);
  return made;
}

nb::dict directive_dict(const SourceDirective& site) {
  nb::dict made = position_dict(site.at);
  made["last_line"] = site.last_line;
  made["is_operator"] = site.is_operator;
  made["kind"] = text_object(site.directive.kind);
  made["name"] = text_object(site.directive.name);
  made["dataset"] = text_object(site.directive.dataset);
  nb::list further;
  for (const std::string& name : site.directive.further) further.append(text_object(name));
  made["further"] = further;
  made["signature"] = text_object(site.directive.signature);
  nb::list clauses;
  for (std::size_t i = 0; i < site.directive.clauses.size(); ++i) {
    nb::dict clause = position_dict(site.clauses[i]);
    clause["name"] = text_object(site.directive.clauses[i].name);
    nb::list entries;
    for (const DirectiveEntry& entry : site.directive.clauses[i].entries) {
      nb::list values;
      for (const std::string& value : entry.values) values.append(text_object(value));
      entries.append(nb::make_tuple(text_object(entry.key), text_object(entry.type), values));
    }
    clause["entries"] = entries;
    clauses.append(clause);
  }
  made["clauses"] = clauses;
  return made;
}

nb::dict template_dict(const std::string& path, bool is_cxx, std::vector<std::string> include_directories,
                       std::vector<std::pair<std::string, std::string>> definitions) {
  const std::string text = value_or_raise(read_file(path));
  SourceLanguage language;
  language.is_cxx = is_cxx;
  language.include_directories = std::move(include_directories);
  language.definitions = std::move(definitions);
  const auto read_include = [](const std::string& include) -> std::optional<std::string> {
    auto content = read_file(include);
    return content ? std::optional(*std::move(content)) : std::nullopt;
  };
  const bool is_fortran = is_free_form(path);
  const CheckedSource checked = is_fortran ? check_fortran(path, text, language.definitions)
                                           : check_source(path, text, language, {}, read_include);
  nb::list findings, directives;
  for (const SourceFinding& finding : checked.findings) findings.append(finding_dict(finding));
  for (const SourceDirective& site : checked.directives) directives.append(directive_dict(site));
  nb::dict made;
  made["text"] = text_object(text);
  made["include_line"] = is_fortran ? 0 : last_include_line(text);
  made["findings"] = findings;
  made["directives"] = directives;
  return made;
}

}  // namespace

void bind_directives(nb::module_& module) {
  module.def("read_template", template_dict, "path"_a, "is_cxx"_a, "include_directories"_a, "definitions"_a);
}

}  // namespace iosig::python
