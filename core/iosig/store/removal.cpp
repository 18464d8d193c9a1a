#include "iosig/store/removal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/store/container.h"
#include "iosig/store/target_owner.h"

namespace iosig {
namespace {

constexpr std::string_view removed_mark = ".iosig-removed-";

/// With nobody else; -1: somebody holds it.
Fd take_alone(const std::string& path) {
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return folder;
}

bool is_removed_name(const std::string& path) { return split_path(path).name.find(removed_mark) != std::string::npos; }

}  // namespace

std::string removed_name(std::string_view path) {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) random = static_cast<std::uint64_t>(unix_ns());
  return name_beside(path, "removed", fmt::format("{:016x}", random));
}

bool hold_container(int folder) { return ::flock(folder, LOCK_SH | LOCK_NB) == 0; }

Result<Removal> removal_of(const std::string& path) {
  const std::string plain(without_trailing_slashes(path));
  struct stat status {};
  if (::lstat(plain.c_str(), &status) != 0) return system_failure("remove", plain);
  if (S_ISLNK(status.st_mode)) return fail(ErrorKind::usage, "'{}' is a link", printable(plain));
  const auto folder = ContainerFolder::open(plain);
  if (!folder) return pass_on(folder.error());
  Removal removal{{plain}, 0};
  const std::vector<std::string>& targets = (*folder)->manifest().targets;
  for (std::size_t n = 0; n < targets.size(); ++n)
    if (::lstat(targets[n].c_str(), &status) == 0 && !other_owner(**folder, n)) removal.folders.push_back(targets[n]);
  for (const std::int64_t id : (*folder)->list().data) {
    const Fd data = (*folder)->open_dropping(Dropping::data, id, O_PATH);
    if (data && ::fstat(data.get(), &status) == 0) removal.data_bytes += status.st_size;
  }
  return removal;
}

Result<void> unlink_container(const std::string& path) {
  // Its own name first: what else gets the name from now on is another one.
  const std::string plain(without_trailing_slashes(path)), aside = removed_name(plain);
  if (::rename(plain.c_str(), aside.c_str()) != 0) return system_failure("remove", plain);
  struct stat status {};
  if (::lstat(aside.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {  // a file that was put there in between
    if (::unlink(aside.c_str()) != 0) return system_failure("remove", plain);
    return {};
  }
  // Whoever holds it removes it, or has just done so.
  if (const Fd alone = take_alone(aside)) (void)remove_container(aside);
  return {};
}

bool is_unlinked(int folder) { return is_removed_name(place_of(folder)); }

void let_go_container(Fd folder) {
  // Its name is looked at when it is let go: who removes it gives it another name first, and then asks who holds it.
  const Fd known(::openat(folder.get(), ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  folder = {};
  const std::string where = place_of(known.get());
  struct stat held {
  }, there{};
  if (!is_removed_name(where) || ::fstat(known.get(), &held) != 0) return;
  const Fd alone = take_alone(where);
  const bool is_it =
      alone && ::fstat(alone.get(), &there) == 0 && there.st_dev == held.st_dev && there.st_ino == held.st_ino;
  if (is_it) (void)remove_container(where);
}

}  // namespace iosig
