#include "iosig/enact/home.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>

#include "iosig/base/text.h"
#include "iosig/enact/journal_directory.h"

namespace iosig {
namespace {

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

Fd open_directory(const std::string& path) { return Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); }

std::uint64_t inode_of(const Fd& directory) {
  struct stat status {};
  return ::fstat(directory.get(), &status) == 0 ? status.st_ino : 0;
}

bool is_home(const Fd& directory, const JournalEntry& entry) {
  return directory && inode_of(directory) == entry.home_inode && filesystem_id(directory) == entry.home_filesystem_id;
}

/// Finds a home directory that is no longer at `path`: its first missing component, or its last one, has another name
/// in the same parent.
std::optional<std::string> renamed_directory(const std::string& path, const JournalEntry& entry) {
  std::string parent = parent_of(path);
  while (parent != "/" && !open_directory(parent)) parent = parent_of(parent);
  const std::size_t name_end = path.find('/', parent == "/" ? 1 : parent.size() + 1);
  const std::string below = name_end == std::string::npos ? "" : path.substr(name_end);
  const Fd directory(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A rename stays on its file system. Other file systems mounted there are not touched; they may not respond.
  if (!directory || filesystem_id(directory) != entry.home_filesystem_id) return {};
  const auto names = names_in(directory);
  if (!names) return {};
  for (const std::string& name : *names) {
    std::string candidate = fmt::format("{}/{}{}", parent == "/" ? "" : parent, name, below);
    const Fd opened(::open(candidate.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (is_home(opened, entry)) return candidate;
  }
  return {};
}

}  // namespace

void record_home(JournalEntry& entry, const Place& link) {
  entry.home_filesystem_id = filesystem_id(link.directory);
  entry.home_inode = link.inode;
}

JournalEntry at_home(JournalEntry entry) {
  if (entry.kind != RedirectKind::link || entry.home_inode == 0) return entry;
  const auto place = locate(AT_FDCWD, entry.path);
  if (place && (is_home(place->directory, entry) || link_target(*place) == entry.destination)) return entry;
  const std::size_t slash = entry.path.rfind('/');
  if (slash == 0) return entry;
  if (const auto directory = renamed_directory(entry.path.substr(0, slash), entry))
    entry.path = *directory + entry.path.substr(slash);
  return entry;
}

Result<void> check_home(const JournalEntry& entry) {
  std::string path = parent_of(entry.path);
  Fd directory = open_directory(path);
  const bool is_there = static_cast<bool>(directory);
  if (is_there && (entry.home_inode == 0 || is_home(directory, entry))) return {};
  while (!directory && path != "/") directory = open_directory(path = parent_of(path));
  const bool is_known = entry.home_filesystem_id != 0;
  if (is_known && directory && filesystem_id(directory) == entry.home_filesystem_id)
    return {};  // removed, or moved away
  return fail(ErrorKind::system, "the directory '{}' is not {}; its file system may not be mounted",
              printable(parent_of(entry.path)), is_there ? "the one in which the link was made" : "there");
}

}  // namespace iosig
