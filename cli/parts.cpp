#include "parts.h"

#include <unistd.h>

#include "iosig/base/files.h"
#include "iosig/base/text.h"

namespace iosig::cli {

namespace fs = std::filesystem;

fs::path Parts::plugin(int gcc_major) const { return lib / "iosig" / fmt::format("gcc-{}", gcc_major) / "iosig.so"; }

Result<Parts> find_parts() {
  std::error_code failure;
  const fs::path self = fs::read_symlink("/proc/self/exe", failure);
  if (failure) return system_failure("read", "/proc/self/exe", failure.value());
  const fs::path prefix = self.parent_path().parent_path();
  for (const fs::path& lib : {prefix / "lib", prefix / IOSIG_LIBDIR})
    if (fs::exists(lib / "libiosig.so")) return Parts{prefix / "include", lib};
  return fail(ErrorKind::system, "cannot find libiosig.so in '{}': build it (make build) or install IOSIG again",
              (prefix / "lib").string());
}

namespace {

/// Returns the program's path. Fails if this IOSIG was built without `library`, and so without it.
Result<std::string> find_program(const char* name, std::string_view library, std::string_view package) {
  std::error_code none;
  const fs::path self = fs::read_symlink("/proc/self/exe", none);
  std::string program = (self.parent_path().parent_path() / "libexec" / "iosig" / name).string();
  if (::access(program.c_str(), X_OK) != 0)
    return fail(ErrorKind::system, "there is no '{}': this IOSIG was built without {}; install {} and build it again",
                printable(program), library, package);
  return program;
}

}  // namespace

Result<std::string> find_daemon() { return find_program("iosig-fuse", "libfuse3", "libfuse3-dev"); }
Result<std::string> find_line_reader() { return find_program("iosig-lines", "libdw", "libdw-dev"); }

}  // namespace iosig::cli
