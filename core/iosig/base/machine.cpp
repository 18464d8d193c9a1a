#include "iosig/base/machine.h"

#include <unistd.h>

#include <climits>
#include <ctime>

#include "iosig/base/files.h"
#include "iosig/base/text.h"

namespace iosig {

const std::string& boot_id() {
  static const std::string& id = *[] {  // never destroyed: exit handlers of the host may still use it
    auto text = read_file("/proc/sys/kernel/random/boot_id");
    return new std::string(text ? trimmed(*text) : std::string_view{});
  }();
  return id;
}

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string node_since_boot() { return fmt::format("{:016x}", fnv1a(boot_id().empty() ? host_name() : boot_id())); }

std::int64_t unix_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return unix_ns(now);
}

}  // namespace iosig
