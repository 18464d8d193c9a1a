#include "iosig/enact/journal_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <tuple>

#include "iosig/base/text.h"
#include "iosig/base/trust.h"
#include "iosig/enact/drain_request.h"
#include "iosig/enact/maker.h"
#include "iosig/enact/own_file.h"

namespace iosig {
namespace {

// Three paths of 4096 bytes, each byte as %XX, and the other fields.
constexpr std::uint64_t largest_entry_bytes = 256 << 10;
constexpr const char* lock_name = ".lock";  ///< an empty file; a lock on the byte at the hash of an id locks its entry
constexpr int state_directory_flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

Result<std::string> journal_path() {
  const std::string state = state_directory();
  if (state.empty())
    return fail(ErrorKind::system, "there is nowhere to keep the journal: set HOME, XDG_STATE_HOME or IOSIG_STATE");
  return state + "/journal";
}

/// Opens the journal's directory; an empty descriptor if it is missing. Refuses a directory that other users can write
/// to, because entries control operations on the user's files.
Result<Fd> open_journal(const std::string& path) {
  Fd directory(::open(path.c_str(), state_directory_flags));
  if (!directory && errno == ENOENT) return directory;
  struct stat status {};
  if (!directory || ::fstat(directory.get(), &status) != 0) return system_failure("open the journal's directory", path);
  if (status.st_uid == ::geteuid() && (status.st_mode & 022) == 0) return directory;
  return fail(
      ErrorKind::system,
      "the journal's directory '{}' (user {}, mode {:04o}) is not closed to others, so it is not used: chmod 700 it "
      "if you trust what it holds, or name another place with IOSIG_STATE",
      printable(path), status.st_uid, status.st_mode & 07777);
}

/// Opens the journal's directory; creates it if it is missing. Only then, and when a command reads the journal, the
/// path to it is checked for safety. The check costs microseconds, and a directory of this user that is closed to
/// others contains no other user's files wherever it is.
Result<Fd> open_or_make_journal(const std::string& path) {
  auto directory = open_journal(path);
  if (!directory || *directory) return directory;
  if (auto sound = check_directory(path); !sound) return pass_on(sound.error());
  if (auto made = make_directories(path); !made) return pass_on(made.error());
  if (auto sound = check_directory(path); !sound) return pass_on(sound.error());
  directory = open_journal(path);
  if (directory && !*directory) return system_failure("open the journal's directory", path, ENOENT);
  return directory;
}

/// Opens the file of the locks; an empty descriptor if there is no journal, or the file cannot be made.
Result<Fd> open_locks() {
  const auto path = journal_path();
  if (!path) return pass_on(path.error());
  const auto directory = open_journal(*path);
  if (!directory) return pass_on(directory.error());
  if (!*directory) return Fd{};
  constexpr int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Fd file(::openat(directory->get(), lock_name, flags, 0600));
  if (file || errno != EACCES) return file;
  ensure_mode(*directory, lock_name, 0600);  // it was made under a umask that denies it to its owner
  return Fd(::openat(directory->get(), lock_name, flags, 0600));
}

/// Returns the lock on the byte of the redirect: below 2^62 for settling, above for draining.
struct flock byte_of(std::string_view id, LockFor purpose) {
  struct flock one_byte {};
  one_byte.l_type = F_WRLCK;
  one_byte.l_whence = SEEK_SET;
  one_byte.l_start = static_cast<off_t>((fnv1a(id) >> 2) + (purpose == LockFor::draining ? 1ULL << 62 : 0));
  one_byte.l_len = 1;
  return one_byte;
}

/// Whether the name is a draft, or the record of a drain that ended after its redirect was settled. Only while no run
/// settles.
bool is_left_over(const Fd& directory, const std::string& name) {
  if (!name.starts_with('.')) return false;
  if (name.ends_with(".draft")) return true;
  if (!name.ends_with(".drain")) return false;
  const std::string id = name.substr(1, name.rfind('.') - 1);
  return ::faccessat(directory.get(), (id + ".json").c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT &&
         !is_locked(id, LockFor::draining);
}

bool was_just_written(const Fd& directory, const char* name) {
  struct stat status {};
  return ::fstatat(directory.get(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         std::abs(std::time(nullptr) - status.st_mtim.tv_sec) <= 2;
}

std::string file_name(const JournalEntry& entry) { return entry.id + ".json"; }

bool is_whole(const Result<std::string>& text) { return text && text->ends_with("}\n"); }

/// Reads one entry. Waits up to 20 ms for another process that may be writing it.
Result<std::string> read_when_written(const Fd& directory, const char* name, const std::string& full) {
  auto text = read_file_in(directory, name, full, largest_entry_bytes);
  for (int tries = 0; tries < 20 && text && !is_whole(text) && was_just_written(directory, name); ++tries) {
    const timespec moment{0, 1'000'000};
    ::nanosleep(&moment, nullptr);
    text = read_file_in(directory, name, full, largest_entry_bytes);
  }
  return text;
}

/// Adds the entry `name` to `journal`; nothing if it was settled since the directory was listed.
void read_entry(const Fd& directory, const char* name, const std::string& full, Journal& journal) {
  const auto text = read_when_written(directory, name, full);
  if (!text && ::faccessat(directory.get(), name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) return;
  auto entry = text ? parse_journal_entry(*text, printable(full)) : pass_on(text.error());
  if (entry && file_name(*entry) != name)
    entry = fail(ErrorKind::bad_input, "{}: journal entry belongs into '{}': it was renamed; delete it or name it so",
                 printable(full), file_name(*entry));
  if (entry)
    journal.entries.push_back(*std::move(entry));
  else
    journal.unreadable.push_back({full, text && !is_whole(text), std::move(entry.error())});
}

}  // namespace

std::uint64_t filesystem_id(const Fd& directory) {
  struct statvfs status {};
  return ::fstatvfs(directory.get(), &status) == 0 ? status.f_fsid : 0;
}

Result<JournalEntry> new_journal_entry(RedirectedBy by) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) return system_failure("ask for", "random bytes");
  JournalEntry entry;
  entry.id = fmt::format("{:016x}", random);
  entry.by = by;
  sign(entry);
  return entry;
}

Result<void> record(const JournalEntry& entry, bool durable) {
  const auto path = journal_path();
  if (!path) return pass_on(path.error());
  const auto directory = open_or_make_journal(*path);
  if (!directory) return pass_on(directory.error());
  const std::string name = file_name(entry), full = *path + "/" + name;
  const Fd file(::openat(directory->get(), name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) return system_failure("write the journal entry", full);
  (void)::fchmod(file.get(), 0600);  // whatever the umask of the program
  auto written = write_all(file.get(), journal_entry_text(entry), full);
  if (written && durable && (::fsync(file.get()) != 0 || ::fsync(directory->get()) != 0))
    written = system_failure("sync the journal entry", full);
  if (!written) ::unlinkat(directory->get(), name.c_str(), 0);
  return written;
}

bool is_recorded(std::string_view id) {
  const auto path = journal_path();
  return path && ::access(fmt::format("{}/{}.json", *path, id).c_str(), F_OK) == 0;
}

bool is_settled(std::string_view id) {
  const auto path = journal_path();
  if (!path) return false;
  const auto directory = open_journal(*path);
  return directory && *directory &&
         ::faccessat(directory->get(), fmt::format("{}.json", id).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
         errno == ENOENT;
}

Result<void> rewrite_entry(const JournalEntry& entry) {
  const auto path = journal_path();
  if (!path) return pass_on(path.error());
  const auto directory = open_or_make_journal(*path);
  if (!directory) return pass_on(directory.error());
  const std::string name = file_name(entry), full = *path + "/" + name;
  return replace_file_in(*directory, name, journal_entry_text(entry),
                         {.draft = fmt::format(".{}.draft", entry.id), .shown = full});
}

std::optional<JournalEntry> recorded_entry(const std::string& id) {
  const auto path = journal_path();
  if (!path) return {};
  const auto directory = open_journal(*path);
  if (!directory || !*directory) return {};
  const std::string name = id + ".json", full = *path + "/" + name;
  auto entry = read_file_in(*directory, name, full, largest_entry_bytes).and_then([&](const std::string& text) {
    return parse_journal_entry(text, printable(full));
  });
  if (!entry) return {};
  return *std::move(entry);
}

std::uint32_t journal_mark() {
  const auto path = journal_path();
  const Fd directory(path ? ::open(path->c_str(), state_directory_flags) : -1);
  struct stat status {};
  if (!directory || ::fstat(directory.get(), &status) != 0) return 0;
  const std::array<std::uint64_t, 2> identity{filesystem_id(directory), status.st_ino};
  const std::uint64_t mark = fnv1a({reinterpret_cast<const char*>(identity.data()), sizeof identity});
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(mark));
}

Result<void> forget(const JournalEntry& entry) {
  const auto path = journal_path();
  if (!path) return pass_on(path.error());
  const std::string full = *path + "/" + file_name(entry);
  // First: no record without an entry after a kill. The draft is of a drain that was killed.
  for (const char* end : {".drain.draft", ".drain"}) ::unlink(fmt::format("{}/.{}{}", *path, entry.id, end).c_str());
  if (::unlink(full.c_str()) != 0 && errno != ENOENT) return system_failure("remove the journal entry", full);
  if (entry.drain) drop_drain_request(*path, entry.id);
  return {};
}

/// Example: a.json is whole, b.json ends in the middle because its writer was killed, c.json was settled since the
/// directory was listed. Returns the entry of a, an unreadable b with `is_cut`, and nothing of c.
Result<Journal> read_journal() {
  const auto path = journal_path();
  if (!path) return pass_on(path.error());
  if (auto sound = check_directory(*path); !sound) return pass_on(sound.error());
  const auto directory = open_journal(*path);
  if (!directory) return pass_on(directory.error());
  Journal journal;
  if (!*directory) return journal;
  const int listing = ::openat(directory->get(), ".", state_directory_flags);
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::fdopendir(listing), ::closedir);
  if (!listed) return system_failure("list the journal's directory", *path);
  while (const dirent* item = ::readdir(listed.get()))
    if (item->d_name[0] != '.')
      read_entry(*directory, item->d_name, fmt::format("{}/{}", *path, item->d_name), journal);
  std::sort(journal.entries.begin(), journal.entries.end(), [](const JournalEntry& a, const JournalEntry& b) {
    return std::tie(a.created_unix_s, a.path, a.id) < std::tie(b.created_unix_s, b.path, b.id);
  });
  return journal;
}

Result<Fd> join_journal() {
  const auto path = journal_path();
  if (!path) return pass_on(path.error());
  auto directory = open_journal(*path);
  if (!directory || !*directory) return directory;
  // Data are settled even if the file system cannot lock, as with some network file systems.
  if (::flock(directory->get(), LOCK_EX | LOCK_NB) == 0) {  // exclusive: any draft was left by a killed run
    if (const auto names = names_in(*directory))
      for (const std::string& name : *names)
        if (is_left_over(*directory, name)) ::unlinkat(directory->get(), name.c_str(), 0);
  }
  for (int tries = 0; ::flock(directory->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK; ++tries) {
    if (tries == 100)  // a starting run locks it exclusively for a moment, an early version until it ends
      return fail(ErrorKind::system, "another 'iosig finalize', recover or gc is at work; try again when it has ended");
    const timespec moment{0, 10'000'000};
    ::nanosleep(&moment, nullptr);
  }
  return directory;
}

Result<std::optional<Fd>> lock_entry(std::string_view id, IfBusy if_busy, LockFor purpose) {
  auto opened = open_locks();
  if (!opened) return pass_on(opened.error());
  Fd file = *std::move(opened);
  if (!file) return file;
  struct flock one_byte = byte_of(id, purpose);
  if (::fcntl(file.get(), F_OFD_SETLK, &one_byte) == 0) return file;
  if (errno != EAGAIN && errno != EACCES) return file;
  if (if_busy == IfBusy::skip) return std::nullopt;
  while (::fcntl(file.get(), F_OFD_SETLKW, &one_byte) != 0)
    if (errno != EINTR) break;
  return file;
}

bool is_locked(std::string_view id, LockFor purpose) {
  const auto file = open_locks();
  if (!file || !*file) return false;
  struct flock one_byte = byte_of(id, purpose);
  return ::fcntl(file->get(), F_OFD_GETLK, &one_byte) == 0 && one_byte.l_type != F_UNLCK;
}

Result<OpenJournal> open_journal_directory(IfMissing if_missing) {
  auto path = journal_path();
  if (!path) return pass_on(path.error());
  auto directory = if_missing == IfMissing::make ? open_or_make_journal(*path) : open_journal(*path);
  if (!directory) return pass_on(directory.error());
  if (!*directory) return system_failure("open the journal's directory", *path, ENOENT);
  return OpenJournal{*std::move(directory), *std::move(path)};
}

}  // namespace iosig
