// **Deletes** temporary data whose link a program has deleted.
//
// A program that deletes or replaces its file removes only the link; the data would stay on the fast mount point, as 95
// files of one LevelDB did. The path does not show whether a link was deleted or renamed. A descriptor of the link
// itself (O_PATH) does: its link count is 0 once no name leads to it.
//
// But `mv` to another file system and `cp -a` with `rm` copy the link before they delete it: then the copy leads to the
// data. So only data declared temp go with their link; others stay, as an orphan.
#pragma once

#include <sys/types.h>

#include <utility>

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"

namespace iosig {

/// The link of a redirect, held open. Empty on a file system that other nodes may change; an empty one never counts as
/// deleted.
class HeldLink {
 public:
  HeldLink() = default;
  /// Opens the link at `place`. The descriptor has a high number, outside the range that programs expect to get.
  explicit HeldLink(const Place& place);
  HeldLink(HeldLink&&) = default;
  // The descriptor and its identity move together; otherwise the descriptor would never be closed.
  HeldLink& operator=(HeldLink&& other) noexcept {
    link_ = std::move(other.link_);  // Fd swaps
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    return *this;
  }
  ~HeldLink();

  explicit operator bool() const { return static_cast<bool>(link_); }
  /// Whether no name leads to the link any more.
  [[nodiscard]] bool is_deleted() const;

 private:
  /// Whether the descriptor is still the link. A program may close descriptors that are not its own and reuse the
  /// number for another file.
  [[nodiscard]] bool is_still_ours(nlink_t* links = nullptr) const;

  Fd link_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// Whether data of this signature are deleted with the last name of their link.
[[nodiscard]] bool goes_with_its_link(const Signature& declared);

/// **Deletes** the data of a redirect whose link was deleted, their companions and the journal entry. As after
/// unlink(2), programs that have them open keep them until they close them. False, and nothing is changed: another run
/// settles them, they have already come home, or goes_with_its_link() does not hold.
[[nodiscard]] Result<bool> drop_deleted(const JournalEntry& entry);

}  // namespace iosig
