// Checks the directives of a Fortran source in free form: `!$sigio ...`, continued as OpenMP's are.
//
//   !$sigio dataset ckpt.temp type(double) dims(x, y, z) &
//   !$sigio   decomp(blk) data(temp)
//
// Conditions of a preprocessor are not evaluated, and included files are not read.
#pragma once

#include <string>
#include <string_view>

#include "iosig/check/source_text.h"

namespace iosig {

/// Whether the file's name is that of Fortran in free form; in fixed form.
[[nodiscard]] bool is_free_form(std::string_view path);
[[nodiscard]] bool is_fixed_form(std::string_view path);

/// Never fails: every mistake is a finding. A directive's `in_function` is true.
[[nodiscard]] CheckedSource check_fortran(const std::string& path, std::string_view text);

}  // namespace iosig
