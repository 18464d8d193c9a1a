#include "iosig/base/size_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

namespace iosig {

std::int64_t read_size_limit() {
  const int errno_before = errno;
  rlimit limit{};
  const bool is_known = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  errno = errno_before;
  const std::int64_t bytes =
      is_known ? static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX)) : INT64_MAX;
  detail::known_size_limit.store(bytes, std::memory_order_relaxed);
  return bytes;
}

[[gnu::hot]] bool detail::exceeds_size_limit_now(std::int64_t end) { return end > read_size_limit(); }

}  // namespace iosig
