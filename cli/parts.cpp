#include "parts.h"

#include "iosig/base/files.h"

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

}  // namespace iosig::cli
