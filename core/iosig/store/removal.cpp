#include "iosig/store/removal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <climits>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/store/container.h"

namespace iosig {
namespace {

constexpr std::string_view removed_mark = ".iosig-removed-";

/// With nobody else; -1: somebody holds it.
Fd take_alone(const std::string& path) {
  Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (folder && ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return folder;
}

/// Where an open folder is now; empty: nobody knows.
std::string place_of(int folder) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", folder).c_str(), path.data(), path.size() - 1);
  return length <= 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(length));
}

}  // namespace

bool hold_container(int folder) { return ::flock(folder, LOCK_SH | LOCK_NB) == 0; }

Result<void> unlink_container(const std::string& path) {
  const std::string plain(without_trailing_slashes(path));
  if (const Fd alone = take_alone(plain)) return remove_container(plain);
  const std::string aside = name_beside(plain, "removed", fmt::format("{:x}-{:x}", ::getpid(), unix_ns()));
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
