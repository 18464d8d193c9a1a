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

Result<std::string> find_daemon() {
  std::error_code none;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
  const std::string daemon = (self.parent_path().parent_path() / "libexec" / "iosig" / "iosig-fuse").string();
  if (::access(daemon.c_str(), X_OK) != 0)
    return fail(ErrorKind::system,
                "there is no '{}': this IOSIG was built without libfuse3; install libfuse3-dev and build it again",
                printable(daemon));
  return daemon;
}

}  // namespace iosig::cli
