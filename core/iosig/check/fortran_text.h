// Checks the directives of a Fortran source in free form: `!$sigio ...`, continued as OpenMP's are.
//
//   !$sigio dataset ckpt.temp type(double) dims(x, y, z) &
//   !$sigio   decomp(blk) data(temp)
//
// A directive that a condition of the preprocessor (#if) leaves out is not there. Included files are not read.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/check/source_text.h"

namespace iosig {

/// Whether the file's name is that of Fortran in free form; in fixed form.
[[nodiscard]] bool is_free_form(std::string_view path);
[[nodiscard]] bool is_fixed_form(std::string_view path);

/// Never fails: every mistake is a finding. A directive's `in_function` is true. `definitions`: as -D, name and value.
[[nodiscard]] CheckedSource check_fortran(const std::string& path, std::string_view text,
                                          const std::vector<std::pair<std::string, std::string>>& definitions = {});

}  // namespace iosig
