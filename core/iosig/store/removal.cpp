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
  const std::string plain(without_trailing_slashes(path));
  if (const Fd alone = take_alone(plain)) return remove_container(plain);
  const std::string aside = removed_name(plain);
  if (::rename(plain.c_str(), aside.c_str()) != 0) return system_failure("remove", plain);
  // Whoever held it may have let it go just before it had this name.
  if (const Fd alone = take_alone(aside)) return remove_container(aside);
  return {};
}

bool is_unlinked(int folder) { return split_path(place_of(folder)).name.find(removed_mark) != std::string::npos; }

void let_go_container(Fd folder) {
  const std::string where = place_of(folder.get());
  const bool is_left_over = is_unlinked(folder.get());
  folder = {};
  if (!is_left_over) return;
  if (const Fd alone = take_alone(where)) (void)remove_container(where);
}

}  // namespace iosig
