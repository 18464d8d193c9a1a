#include "iosig/enact/coming_home.h"

#include <sys/stat.h>

#include <array>

#include "iosig/base/call_with_timeout.h"
#include "iosig/base/units.h"

namespace iosig {

void ComingHome::add(const Journal& journal) {
  struct Sums {
    std::array<dev_t, 64> homes;
    std::array<std::uint64_t, 64> bytes;
    std::size_t count;
  };
  if (journal.entries.empty()) return;
  const auto sums = call_with_timeout([&] {
    ComingHome all;
    for (const JournalEntry& entry : journal.entries)
      if (struct stat link{};
          entry.kind == RedirectKind::link && ::lstat(entry.path.c_str(), &link) == 0 && S_ISLNK(link.st_mode))
        all.add(link.st_dev, entry.signature, entry.destination);
    Sums found{};
    for (const auto& [home, bytes] : all.bytes_) {
      if (found.count == found.homes.size()) break;
      found.homes[found.count] = home;
      found.bytes[found.count++] = bytes;
    }
    return found;
  });
  for (std::size_t n = 0; sums && n < sums->count; ++n) add(sums->homes[n], sums->bytes[n]);
}

void ComingHome::add(dev_t home, std::uint64_t bytes) {
  if (bytes != 0 && __builtin_add_overflow(bytes_[home], bytes, &bytes_[home])) bytes_[home] = max_bytes;
}

void ComingHome::add(dev_t home, const Signature& signature, const std::string& destination) {
  if (signature.lifetime == Lifetime::temp || signature.archive || signature.tamperproof ||
      signature.residence == Residence::rest)
    return;
  struct stat data {};
  std::uint64_t bytes = signature.total_bytes.value_or(0);
  if (!signature.total_bytes && !destination.empty() && ::stat(destination.c_str(), &data) == 0)
    bytes = static_cast<std::uint64_t>(data.st_blocks) * 512;
  add(home, bytes);
}

std::uint64_t ComingHome::bytes_to(dev_t home) const {
  const auto known = bytes_.find(home);
  return known == bytes_.end() ? 0 : known->second;
}

}  // namespace iosig
