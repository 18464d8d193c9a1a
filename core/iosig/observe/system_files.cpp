#include "iosig/observe/system_files.h"

#include <algorithm>

#include "iosig/base/text.h"

namespace iosig::observe {
namespace {

constexpr std::string_view system_directories[] = {"/usr", "/lib",  "/lib32", "/lib64", "/bin", "/sbin",
                                                   "/etc", "/proc", "/sys",   "/dev",   "/run"};

}  // namespace

bool is_of_system(std::string_view path) {
  if (is_below(path, "/dev/shm")) return false;
  return std::ranges::any_of(system_directories, [&](std::string_view directory) { return is_below(path, directory); });
}

}  // namespace iosig::observe
