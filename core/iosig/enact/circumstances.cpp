#include "iosig/enact/circumstances.h"

#include <sys/stat.h>

#include "iosig/base/text.h"
#include "iosig/config/policy.h"

namespace iosig {
namespace {

bool has_file_system_of(const MountPoint& mount, const Place& place) {
  struct stat status {};
  return ::stat(mount.path.c_str(), &status) == 0 && status.st_dev == place.device;
}

}  // namespace

const MountPoint* described_at(const Place& place, const Storage& storage) {
  const MountPoint* nearest = nullptr;
  for (const MountPoint& mount : storage.mount_points)
    if (is_below(place.directory_path, mount.path) && (nearest == nullptr || mount.path.size() > nearest->path.size()))
      nearest = &mount;
  if (nearest != nullptr && has_file_system_of(*nearest, place)) return nearest;
  for (const MountPoint& mount : storage.mount_points)
    if (&mount != nearest && mount.visibility == Visibility::local && has_file_system_of(mount, place)) return &mount;
  return nullptr;
}

Result<Circumstances> circumstances_at(const Place* place, const Signature& wanted, const Storage& storage,
                                       const Asked& asked, const std::function<PageCache()>& ask) {
  const auto policy = policy_for(asked.policy, wanted, storage);
  if (!policy) return pass_on(policy.error());
  Circumstances given{.policy = *policy,
                      .residence = asked.residence,
                      .min_gain = asked.min_gain,
                      .redirect_s = asked.redirect_s,
                      .settle_s = Asked::settle_by_command_s};
  if (place != nullptr) {
    const MountPoint* home = described_at(*place, storage);
    given.home = Home{home == nullptr ? std::string{} : home->path};
  }
  if (given.policy == Policy::paper) return given;
  // A stream that only writes, waits for the storage and may stay where it is does not meet the page cache.
  const bool may_come_home = wanted.lifetime != Lifetime::temp && place != nullptr;
  const bool reads = wanted.read_share.value_or(0) > 0;
  if (wanted.synchrony == Synchrony::nosync || may_come_home || reads) given.page_cache = ask();
  return given;
}

}  // namespace iosig
