// The I/O directives: what a program's arrays are called in a file, and how ranks share them. `#pragma sigio` in C and
// C++, `!$sigio` in Fortran; `iosig generate` writes the parallel I/O code that they describe. One parser for it, for
// `iosig check` and for the compiler's plugin.
//
//   file NAME path(EXPR) level(LEVEL) comm(EXPR) [access(write|read)] [decomp(NAME)] [hint(KEY="VALUE", ...)]
//        [signature parameters]
//   dims FILE AXIS(EXPR)...                         AXIS(unlimited): records are added along it
//   attr FILE KEY(VALUE)...                         VALUE := text | number | TYPE: EXPR
//   decomp NAME [block(AXIS: START, COUNT; ...)] [cyclic(AXIS: NUMBER, OF[, SIZE]; ...)]
//          [list(AXIS: INDICES, COUNT; ...)]
//   dataset FILE.NAME type(TYPE) dims(AXIS, ...) data(EXPR) [decomp(NAME)] [ghost(AXIS: WIDTH, ...) or ghost(WIDTH)]
//           [as(double|float)] [memory(AXIS, AXIS: EXTENT, ...)] [component(AXIS: INDEX, ...)] [attr(KEY=VALUE, ...)]
//   dataset FILE each(AXIS: NAME[=INDEX], ...) ...  a data set for each of these components of the array along AXIS
//   dataset FILE data(ARRAY, NAME=EXPR, ...) ...    a data set for each of these arrays, by its name
//   output FILE... [record(EXPR)] [status(LVALUE)]  the place where files, or a record of one, are written
//   input FILE... [record(EXPR)] [status(LVALUE)]   the place where they are read
//
// An EXPR is a text in the program's language, of which the parser only requires that brackets and quotes are balanced.
// The text of an attribute or a hint begins with a quote of the language: "..." in C and C++, "..." or '...' in
// Fortran. A number is decimal; the type of an integer is int, or int64 if it does not fit into that. The parser sees
// one directive. Whether the names fit those of other directives is checked by `iosig generate`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "iosig/format/signature_text.h"

namespace iosig {

/// One entry of a clause: `z: c[0]*L, L` has the key `z` and two values. Without a key, e.g. in dims(z, y), the key is
/// empty. `type` is the one before an attribute's value, e.g. attr(time=double: t), or empty. In each(v: dens, velx=4)
/// the keys are dens and velx; the values are the axis and, if there is one, the index. In data(temp, u=v) of a
/// directive that names no data set they are temp and u.
struct DirectiveEntry {
  std::string key, type;
  std::vector<std::string> values;
  Span at;
};

struct DirectiveClause {
  std::string name;
  Span at;  ///< of the name
  std::vector<DirectiveEntry> entries;
};

struct Directive {
  std::string kind;     ///< file, dims, attr, decomp, dataset, output, input
  std::string name;     ///< of the file; of the decomposition
  std::string dataset;  ///< of `dataset FILE.NAME`: NAME; empty if each(...) or data(...) has the names
  Span name_at;
  std::vector<std::string> further;      ///< of `output` and `input`: the files after the first
  std::vector<DirectiveClause> clauses;  ///< in their order; those of dims and attr have the user's names
  std::string signature;                 ///< of `file`: canonical, or empty
};

struct ParsedDirective {
  Directive directive;
  std::vector<Diagnostic> diagnostics;  ///< the first mistake in each clause, by place
  [[nodiscard]] bool ok() const { return diagnostics.empty(); }
};

enum class DirectiveLanguage { c, fortran };  ///< c: C++, too

/// Parses the text after `#pragma sigio` or `!$sigio`.
[[nodiscard]] ParsedDirective parse_directive(std::string_view text, DirectiveLanguage language = DirectiveLanguage::c);

}  // namespace iosig
