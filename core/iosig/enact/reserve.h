// Room that streams were reserved: who declares a totalsize gets it kept free until it is written, so that ten streams
// of 8 GB are not all sent where 10 GB are free.
//
// A mount point's reservations are a small table in the user's own directory there (docs/formats/reservations.md), so
// all processes of this user see them, on every node that shares the mount point. It is changed under a lock that ends
// with its holder, one record in one write: a process killed anywhere leaves a table that works. Reservations of dead
// processes are dropped when room gets short. What other users were reserved cannot be seen.
#pragma once

#include <optional>

#include "iosig/enact/user_directory.h"
#include "iosig/format/journal.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Fills in the free bytes of `mount` and what is reserved of them. To a caller for whom the rest is enough anyway
/// (`needed_bytes`), the reservations may be told too large; else each reserved file is looked at, which takes about a
/// microsecond for each, and what was written of it counts no more.
void ask_room(MountPoint& mount, std::uint64_t needed_bytes);

/// The same of every mount point, in full; one that does not answer in time (base/call_with_timeout) has no known room.
void ask_room(Storage& storage);

/// While it lives, nobody else is reserved room on its mount point.
class Reservation {
 public:
  Reservation() = default;  ///< for a stream that does not say its size: holds and reservations nothing
  Reservation(Reservation&&) = default;
  ~Reservation();

  /// Writes the reservation. It lasts while the maker lives if that is a program (RedirectedBy::runtime), else until
  /// `release`. One that cannot be written (a full disk) is not kept, which only means that others may get the room.
  void keep_for(const JournalEntry& entry) const;

 private:
  friend Result<Reservation> reserve(const UserDirectory&, MountPoint, std::optional<std::uint64_t>);
  Fd table_;  ///< locked
  std::size_t slot_ = 0;
};

/// Looks, under the lock, whether `total_bytes` are free and not reserved. Fails as `infeasible` if not, or if others
/// hold the lock for too long (a fifth of a second).
[[nodiscard]] Result<Reservation> reserve(const UserDirectory& directory, MountPoint mount,
                                          std::optional<std::uint64_t> total_bytes);

/// Drops what this entry was reserved, and with it the reservations of the dead; harmless if there is none. The table
/// goes with its last reservation.
void release(const JournalEntry& entry);

/// Removes a table that holds reservations of the dead only.
void release_stale(const UserDirectory& directory);

/// Name of the table in the user directory.
inline constexpr const char* reservations_name = ".promises";

}  // namespace iosig
