#include "iosig/enact/reserve.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <map>

#include "iosig/base/call_with_timeout.h"
#include "iosig/base/machine.h"
#include "iosig/base/process_life.h"
#include "iosig/base/room.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/config/storage_file.h"
#include "iosig/enact/destination_name.h"
#include "iosig/enact/journal_directory.h"
#include "iosig/enact/own_file.h"
#include "iosig/model/filesystem.h"

namespace iosig {
namespace {

/// A slot of the table. All zero: free. A record whose checksum does not match is stale.
struct Record {
  std::uint64_t id = 0;  ///< id of the journal entry, which begins the name of the reserved file
  std::uint64_t total_bytes = 0;
  std::uint64_t host = 0, boot = 0;  ///< fnv1a of the maker's host and boot id
  std::uint32_t pid = 0;             ///< 0: lasts until released
  /// Inode of the PID namespace of `pid`; if `pid` is 0, journal_mark() of the journal that has the entry. 0: made by
  /// an early version, which recorded neither.
  std::uint32_t where = 0;
  std::int64_t start_ticks = 0;  ///< when process `pid` started; early versions wrote something else
  std::int64_t made_unix_s = 0;
  std::uint64_t checksum = 0;  ///< fnv1a of all before it

  [[nodiscard]] std::uint64_t sum() const {
    return fnv1a({reinterpret_cast<const char*>(this), offsetof(Record, checksum)});
  }
};
static_assert(sizeof(Record) == 64);

using Records = std::vector<Record>;

constexpr std::size_t max_reservations = 1 << 18;
constexpr std::int64_t longest_unjudged_s = 30 * 86400;  // limit for a process whose life is unknown
constexpr timespec between_tries{.tv_sec = 0, .tv_nsec = 100'000};
constexpr int max_tries = 2000;

/// Returns the id at the beginning of the name of a redirect's data; no value for other files.
std::optional<std::uint64_t> id_of(std::string_view name) {
  const auto digits = id_in(name);
  std::uint64_t id = 0;
  if (!digits || std::from_chars(digits->data(), digits->data() + digits->size(), id, 16).ec != std::errc{} || id == 0)
    return {};
  return id;
}

std::optional<std::uint64_t> id_of(const JournalEntry& entry) {
  const auto parsed = parse_destination(entry.destination);
  return parsed ? id_of(std::string_view(parsed->id)) : std::nullopt;
}

std::string table_path(const MountPoint& mount) {
  return fmt::format("{}/{}/{}", mount.path, user_directory_name(), reservations_name);
}

Fd open_table(const UserDirectory& directory, int flags) {
  Fd table(::openat(directory.fd.get(), reservations_name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if ((flags & O_CREAT) != 0) ensure_mode(directory.fd, reservations_name, 0600);
  return table;
}

/// Opens and locks the table. A forked child may share the descriptor, so the lock must be released explicitly, not
/// only by closing. On a file system that cannot lock, the table is used without a lock.
Result<Fd> lock_table(const UserDirectory& directory, int flags) {
  for (int tries = 0; tries < max_tries;) {
    Fd table = open_table(directory, flags);
    if (!table) return system_failure("open the reserved room in", directory.path);
    while (::flock(table.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK && ++tries < max_tries)
      ::nanosleep(&between_tries, nullptr);
    struct stat status {};
    if (::fstat(table.get(), &status) == 0 && status.st_nlink > 0 && tries < max_tries) return table;
    ++tries;  // it was removed with its last reservation before this process locked it
  }
  return fail(ErrorKind::infeasible, "'{}': others are being given room there at this moment",
              printable(directory.path));
}

Records read_table(const Fd& table) {
  struct stat status {};
  if (::fstat(table.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  Records reservations(std::min(static_cast<std::size_t>(status.st_size) / sizeof(Record), max_reservations));
  const ssize_t got = ::pread(table.get(), reservations.data(), reservations.size() * sizeof(Record), 0);
  reservations.resize(got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(Record));
  return reservations;
}

void write_slot(const Fd& table, std::size_t slot, const Record& reservation) {
  (void)!::pwrite(table.get(), &reservation, sizeof reservation, static_cast<off_t>(slot * sizeof reservation));
}

/// Returns a mark of this host. A container may have the host name of a container on another machine, so its mark
/// includes the boot id.
std::uint64_t host_mark() {
  return fnv1a(has_machines_host_name() ? host_name() : fmt::format("{}@{}", host_name(), boot_id()));
}

/// Tells whether the maker of a reservation is alive. Only for reservations made on this machine and, if they name a
/// process, since it was booted.
Life maker_of(const Record& reservation) {
  static const NamespaceId here = this_process().pid_namespace;
  if (reservation.pid == 0) {
    if (reservation.where != 0 && reservation.where != journal_mark()) return Life::unknown;
    return is_recorded(fmt::format("{:016x}", reservation.id)) ? Life::alive : Life::dead;
  }
  return life_of(ProcessId{reservation.pid, reservation.start_ticks, {here.device, reservation.where}});
}

bool is_stale(const Record& reservation) {
  static const std::uint64_t this_host = host_mark(), this_boot = fnv1a(boot_id());
  if (reservation.checksum != reservation.sum()) return true;
  Life maker = Life::unknown;
  if (reservation.host == this_host)
    maker = reservation.pid != 0 && reservation.boot != this_boot ? Life::dead : maker_of(reservation);
  return maker == Life::dead ||
         (maker == Life::unknown && std::abs(std::time(nullptr) - reservation.made_unix_s) > longest_unjudged_s);
}

/// Calls `each` with every name in the directory. Does not use opendir, which allocates: this also runs in a program's
/// signal handlers (runtime/host/run_isolated.h).
template <class Each>
void for_each_name(int directory, Each each) {
  alignas(dirent64) char space[8192];
  ::lseek(directory, 0, SEEK_SET);
  for (ssize_t got; (got = ::getdents64(directory, space, sizeof space)) > 0;)
    for (ssize_t at = 0; at < got;) {
      const auto* item = reinterpret_cast<const dirent64*>(space + at);
      if (const std::string_view name = item->d_name; name != "." && name != "..") each(item->d_name);
      at += item->d_reclen;
    }
}

/// Returns the bytes that the file, or all files of the job directory, occupy.
std::uint64_t written_bytes(int directory, const char* name) {
  struct stat status {};
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  if (!S_ISDIR(status.st_mode)) return static_cast<std::uint64_t>(status.st_blocks) * 512;
  const Fd job(::openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  std::uint64_t sum = 0;
  if (job) for_each_name(job.get(), [&](const char* inner) { sum += written_bytes(job.get(), inner); });
  return sum;
}

std::uint64_t total_bytes(const Records& reservations) {
  std::uint64_t sum = 0;
  for (const Record& reservation : reservations)
    if (__builtin_add_overflow(sum, reservation.total_bytes, &sum)) return std::numeric_limits<std::uint64_t>::max();
  return sum;
}

/// Clears stale reservations and subtracts the written bytes from the others.
void look_closer(const UserDirectory& directory, Records& reservations) {
  std::map<std::uint64_t, Record*> by_id;
  for (Record& reservation : reservations) {
    if (reservation.id != 0 && is_stale(reservation)) reservation = {};
    if (reservation.id != 0) by_id[reservation.id] = &reservation;
  }
  if (by_id.empty()) return;
  for_each_name(directory.fd.get(), [&](const char* name) {
    const auto id = id_of(std::string_view(name));
    const auto reserved = id ? by_id.find(*id) : by_id.end();
    if (reserved == by_id.end()) return;
    std::uint64_t& left = reserved->second->total_bytes;
    left -= std::min(left, written_bytes(directory.fd.get(), name));
  });
}

/// Returns the bytes reserved and not yet written; exact only if more than `unless_at_most`.
std::uint64_t reserved_bytes(const UserDirectory& directory, Records reservations, std::uint64_t unless_at_most) {
  if (const std::uint64_t at_most = total_bytes(reservations); at_most <= unless_at_most) return at_most;
  look_closer(directory, reservations);
  return total_bytes(reservations);
}

void clear_stale(const Fd& locked_table, Records& reservations) {
  for (std::size_t slot = 0; slot < reservations.size(); ++slot) {
    if (reservations[slot].id == 0 || !is_stale(reservations[slot])) continue;
    reservations[slot] = {};
    write_slot(locked_table, slot, {});
  }
}

/// Returns how much may be reserved while `needed_bytes` still fit.
std::uint64_t spare_bytes(const MountPoint& mount, std::uint64_t needed_bytes) {
  const std::uint64_t allowed = allowed_bytes(mount);
  return allowed - std::min(allowed, needed_bytes);
}

/// File systems in memory share it: what is reserved on one is no room on another, but for what that lacks anyway
/// because it is smaller than the memory.
void share_memory(Storage& storage) {
  const auto memory = memory_room_bytes();
  if (!memory) return;
  std::uint64_t total = 0;
  for (const MountPoint& mount : storage.mount_points)
    if (is_volatile_filesystem(mount.filesystem)) total += mount.reserved_bytes;
  for (MountPoint& mount : storage.mount_points) {
    if (total == 0 || !is_volatile_filesystem(mount.filesystem) || !mount.free_bytes) continue;
    const std::uint64_t elsewhere = *memory - std::min(*memory, *mount.free_bytes);
    mount.reserved_bytes = std::max(mount.reserved_bytes, total - std::min(total, elsewhere));
  }
}

/// Clears the reservations of `id`, and removes the table if no living process has one.
void drop_reservations(const UserDirectory& directory, std::optional<std::uint64_t> id) {
  const auto table = lock_table(directory, O_RDWR);
  if (!table) return;
  Records reservations = read_table(*table);
  for (std::size_t slot = 0; slot < reservations.size(); ++slot) {
    if (reservations[slot].id != id) continue;
    reservations[slot] = {};
    write_slot(*table, slot, {});
  }
  if (std::ranges::all_of(reservations,
                          [](const Record& reservation) { return reservation.id == 0 || is_stale(reservation); }))
    ::unlinkat(directory.fd.get(), reservations_name, 0);
  ::flock(table->get(), LOCK_UN);
}

}  // namespace

void ask_room(MountPoint& mount, std::uint64_t needed_bytes) {
  ask_free_space(mount);
  mount.reserved_bytes = 0;
  // Most often there is no table, which one call tells. A table is read only in a directory that is proven ours.
  if (struct stat none{}; ::lstat(table_path(mount).c_str(), &none) != 0 && errno == ENOENT) return;
  const auto directory = open_user_directory(mount.path, IfMissing::refuse);
  if (!directory) return;
  if (const Fd table = open_table(*directory, O_RDONLY))
    mount.reserved_bytes = reserved_bytes(*directory, read_table(table), spare_bytes(mount, needed_bytes));
}

void ask_room(Storage& storage) {
  struct Free {
    std::optional<std::uint64_t> bytes;
    std::uint64_t reserved_bytes = 0, withheld_bytes = 0;
    bool by_quota = false;
  };
  for (MountPoint& mount : storage.mount_points) {
    const auto room = call_with_timeout([&] {
      ask_room(mount, std::numeric_limits<std::uint64_t>::max());
      return Free{mount.free_bytes, mount.reserved_bytes, mount.withheld_bytes, mount.is_free_by_quota};
    });
    mount.free_bytes = room ? room->bytes : std::nullopt;
    mount.is_free_by_quota = room && room->by_quota;
    mount.reserved_bytes = room ? room->reserved_bytes : 0;
    mount.withheld_bytes = room ? room->withheld_bytes : 0;
  }
  share_memory(storage);
}

Reservation::~Reservation() {
  if (table_) ::flock(table_.get(), LOCK_UN);
}

void Reservation::keep_for(const JournalEntry& entry) const {
  const auto id = id_of(entry);
  if (!table_ || !id) return;
  Record reservation{.id = *id,
                     .total_bytes = entry.signature.total_bytes.value_or(0),
                     .host = host_mark(),
                     .boot = fnv1a(entry.boot),
                     .start_ticks = entry.start_ticks,
                     .made_unix_s = entry.created_unix_s};
  if (entry.by == RedirectedBy::runtime) {
    reservation.pid = static_cast<std::uint32_t>(entry.pid);
    reservation.where = static_cast<std::uint32_t>(entry.pid_namespace.inode);
  } else {
    reservation.where = journal_mark();
  }
  reservation.checksum = reservation.sum();
  write_slot(table_, slot_, reservation);
}

Result<Reservation> reserve(const UserDirectory& directory, MountPoint mount,
                            std::optional<std::uint64_t> total_bytes) {
  Reservation reservation;
  if (!total_bytes) return reservation;
  auto table = lock_table(directory, O_RDWR | O_CREAT);
  if (!table) return pass_on(table.error());
  reservation.table_ = *std::move(table);
  Records reservations = read_table(reservation.table_);
  ask_free_space(mount);
  const std::uint64_t reserved = reserved_bytes(directory, reservations, spare_bytes(mount, *total_bytes));
  if (reserved > spare_bytes(mount, *total_bytes) || allowed_bytes(mount) < *total_bytes)
    return fail(ErrorKind::infeasible, "'{}': no room for {}: {} free, {} of them reserved for other streams",
                printable(mount.path), bytes_text(*total_bytes), about_bytes(static_cast<double>(allowed_bytes(mount))),
                about_bytes(static_cast<double>(reserved)));
  // Reservations that are never released (a program that was never settled) are cleared each time the table has
  // doubled.
  if (reservations.size() >= 32 && std::has_single_bit(reservations.size()))
    clear_stale(reservation.table_, reservations);
  const auto free_slot = std::ranges::find(reservations, std::uint64_t{0}, &Record::id);
  reservation.slot_ = static_cast<std::size_t>(free_slot - reservations.begin());
  return reservation;
}

void release(const JournalEntry& entry) {
  const auto id = id_of(entry);
  if (!id) return;
  if (const auto directory = open_user_directory(entry.mount_point, IfMissing::refuse))
    drop_reservations(*directory, *id);
}

void release_stale(const UserDirectory& directory) { drop_reservations(directory, {}); }

}  // namespace iosig
