#include <dlfcn.h>

#include <cstring>

#include "host/process.h"
#include "host/run_isolated.h"
#include "iosig/base/errno_kept.h"
#include "libiosig/decision.h"

namespace iosig::runtime {
namespace {

using ExpectReads = bool(int dirfd, const char* path, const char* signature);

/// iosig_expect_reads of libiosig-preload, if the program runs with it (preload/prefetch/announced.h).
ExpectReads* expect_reads() {
  static ExpectReads* const found = reinterpret_cast<ExpectReads*>(::dlsym(RTLD_DEFAULT, "iosig_expect_reads"));
  return found;
}

}  // namespace

void announce_reads(int dirfd, const char* path, const char* signature) noexcept {
  if (path == nullptr || signature == nullptr || is_disabled()) return;
  if (std::strstr(signature, "pattern") == nullptr && std::strstr(signature, "order") == nullptr) return;
  const ErrnoKept kept;
  ExpectReads* found = nullptr;
  if (run_isolated([&] { found = expect_reads(); }) && found != nullptr) (void)found(dirfd, path, signature);
}

}  // namespace iosig::runtime
