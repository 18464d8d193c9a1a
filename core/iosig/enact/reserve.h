// Reservations: a stream that declares its totalsize gets that space reserved until it is written. Otherwise ten
// streams of 8 GB might all be sent to a mount point with 10 GB free.
//
// The reservations of a mount point are a small table in the user directory there (docs/formats/reservations.md), so
// all processes of this user see them, on every node that shares the mount point. The table is changed under a lock
// that ends with its holder, one record in one write: a process killed at any point leaves a valid table. Reservations
// of dead processes are dropped when space becomes short. Reservations of other users are not visible.
#pragma once

#include <optional>

#include "iosig/enact/user_directory.h"
#include "iosig/format/journal.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Fills in the free bytes of `mount`, and the reserved and withheld parts of them. If an upper bound of the
/// reservations leaves `needed_bytes` free, it is the result; otherwise every reserved file is inspected, which takes
/// about a microsecond each, and its written bytes are subtracted.
void ask_room(MountPoint& mount, std::uint64_t needed_bytes);

/// Does the same for every mount point, exactly. The free space of a mount point that does not answer in time
/// (base/call_with_timeout) is unknown.
void ask_room(Storage& storage);

/// Holds the lock on its mount point's reservations while it exists, so no other reservation is made there.
class Reservation {
 public:
  Reservation() = default;  ///< for a stream without a totalsize: locks and reserves nothing
  Reservation(Reservation&&) = default;
  ~Reservation();

  /// Writes the reservation. It lasts while the maker is alive if that is a program (RedirectedBy::runtime), else until
  /// `release`. A reservation that cannot be written (full disk) is lost: other streams may then get the space.
  void keep_for(const JournalEntry& entry) const;

 private:
  friend Result<Reservation> reserve(const UserDirectory&, MountPoint, std::optional<std::uint64_t>);
  Fd table_;  ///< locked
  std::size_t slot_ = 0;
};

/// Checks, under the lock, that `total_bytes` are free and not reserved. Fails as `infeasible` if they are not, or if
/// other processes hold the lock for longer than a fifth of a second.
[[nodiscard]] Result<Reservation> reserve(const UserDirectory& directory, MountPoint mount,
                                          std::optional<std::uint64_t> total_bytes);

/// Drops the reservation of this entry; does nothing if there is none. Removes the table when no reservation of a
/// living process is left.
void release(const JournalEntry& entry);

/// Removes a table that holds only reservations of the dead.
void release_stale(const UserDirectory& directory);

/// Name of the table in the user directory.
inline constexpr const char* reservations_name = ".promises";

}  // namespace iosig
