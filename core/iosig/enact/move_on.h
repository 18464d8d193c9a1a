// Moves a redirected file home while this process writes it, because the mount point that was chosen for it is full.
//
// The program that got ENOSPC where its own place has room would not have got it without IOSIG. So the data go home as
// `finalize` brings them (enact/bring_home.h), and the descriptors follow: the same numbers, flags and offset, on the
// file that now is at the path. Then the write is repeated, and the program sees only its result.
//
// **The data stay at the destination until the copy is synced and both the name and the descriptors lead to it.** A
// kill at any step leaves what a killed finalize leaves; the next `finalize` or `recover` undoes or completes it.
#pragma once

#include <cstdint>
#include <string>

#include "iosig/base/result.h"

namespace iosig {

/// Whether the descriptor leads to a regular file in this user's directory on a mount point. Quick; keeps errno.
[[nodiscard]] bool leads_to_redirected(int fd);

struct MovedOn {
  std::string path;  ///< where the file is now
  std::string from;  ///< the mount point that is full
  std::uint64_t data_bytes = 0;
  std::string trouble = {};  ///< what could not be removed at the destination; finalize completes it
};

/// Moves the file behind `fd` home. `more_bytes` must fit there beside the data. Also succeeds if another thread has
/// moved the file meanwhile; `path` is empty then.
///
/// `infeasible`, and nothing is changed: the file is mapped, locked, open a second time or in another process, sealed,
/// of another journal, or has companions; its link is gone; home lacks the room, or lies on the same file system; a
/// file system cannot tell who has it open; another thread of this process writes the file, or does not sleep in the
/// moment of the exchange.
/// Waits while another run of iosig settles the file.
[[nodiscard]] Result<MovedOn> move_on(int fd, std::uint64_t more_bytes);

}  // namespace iosig
