// Deletes the data of a redirect whose link a program has deleted.
//
// A program that deletes or replaces its file removes only the link; the data would stay on the fast mount point, as 95
// files of one LevelDB did. Whether a link was deleted or only moved cannot be told by its path. A descriptor of the
// link itself (O_PATH) tells: its link count is 0 once no name leads to it.
#pragma once

#include <sys/types.h>

#include <utility>

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"

namespace iosig {

/// The link of a redirect, held open. An empty one, of a file system that other nodes change too, is never deleted.
class HeldLink {
 public:
  HeldLink() = default;
  /// Opens the link at `place`. The descriptor has a high number, which programs do not count on.
  explicit HeldLink(const Place& place);
  HeldLink(HeldLink&&) = default;
  HeldLink& operator=(HeldLink&& other) noexcept {  // a descriptor goes with its identity, or it is never closed
    link_ = std::move(other.link_);                 // Fd swaps
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    return *this;
  }
  ~HeldLink();

  explicit operator bool() const { return is_still_ours(); }
  /// Whether no name leads to the link any more.
  [[nodiscard]] bool is_deleted() const;

 private:
  /// A program may close descriptors that are not its own, and get the number for another file.
  [[nodiscard]] bool is_still_ours(nlink_t* links = nullptr) const;

  Fd link_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

/// **Deletes** the data of a redirect whose link was deleted, their companions and the journal entry. As after an
/// unlink, programs that have them open keep them until they close. False, and nothing is changed: another run settles
/// them, they came home already, or they are declared tamperproof or archive.
[[nodiscard]] Result<bool> drop_deleted(const JournalEntry& entry);

}  // namespace iosig
