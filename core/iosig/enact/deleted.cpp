#include "iosig/enact/deleted.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "iosig/enact/agreement.h"
#include "iosig/enact/destination.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/journal_directory.h"
#include "iosig/enact/reserve.h"

namespace iosig {
namespace {

constexpr int min_descriptor = 400;  // most programs use fewer; the usual limit is 1024

}  // namespace

HeldLink::HeldLink(const Place& place) {
  const Fd opened(::openat(place.directory.get(), place.name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0 || !S_ISLNK(status.st_mode)) return;
  if (is_on_shared_file_system(place.directory)) return;
  link_ = Fd(::fcntl(opened.get(), F_DUPFD_CLOEXEC, min_descriptor));
  device_ = status.st_dev;
  inode_ = status.st_ino;
}

HeldLink::~HeldLink() {
  if (!is_still_ours()) Fd(std::move(link_)).release();
}

bool HeldLink::is_still_ours(nlink_t* links) const {
  struct stat status {};
  if (!link_ || ::fstat(link_.get(), &status) != 0) return false;
  if (!S_ISLNK(status.st_mode) || status.st_dev != device_ || status.st_ino != inode_) return false;
  if (links != nullptr) *links = status.st_nlink;
  return true;
}

bool HeldLink::is_deleted() const {
  nlink_t links = 1;
  return is_still_ours(&links) && links == 0;
}

bool goes_with_its_link(const Signature& declared) {
  return declared.lifetime == Lifetime::temp && !declared.archive && !declared.tamperproof;
}

Result<bool> drop_deleted(const JournalEntry& entry) {
  if (!goes_with_its_link(entry.signature)) return false;
  const auto lock = lock_entry(entry.id, IfBusy::skip);
  if (!lock) return pass_on(lock.error());
  if (!*lock || !is_recorded(entry.id) || was_cut_short(entry)) return false;
  const auto destination = open_destination(entry);
  if (!destination) return pass_on(destination.error());
  if (destination->is_retired) return false;
  if (auto retired = retire(*destination, entry); !retired) return pass_on(retired.error());
  if (auto removed = remove_retired(entry); !removed) return pass_on(removed.error());
  release(entry);
  return forget(entry).map([] { return true; });
}

}  // namespace iosig
