// Finds the installed parts of this IOSIG; the build tree has the same layout.
#pragma once

#include <filesystem>
#include <string>

#include "iosig/base/result.h"

namespace iosig::cli {

struct Parts {
  std::filesystem::path include, lib;
  [[nodiscard]] std::filesystem::path plugin(int gcc_major) const;
  [[nodiscard]] std::filesystem::path preload() const { return lib / "libiosig-preload.so"; }
};

[[nodiscard]] Result<Parts> find_parts();
/// The reader of line tables behind `iosig trace --source`.
[[nodiscard]] Result<std::string> find_line_reader();
/// The FUSE daemon behind `iosig mount`.
[[nodiscard]] Result<std::string> find_daemon();

}  // namespace iosig::cli
