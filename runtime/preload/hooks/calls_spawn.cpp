// posix_spawn(3). Its file actions open files in the child by calls that cannot be intercepted. Where such a file is a
// container, or becomes one, it is opened here instead, before the child is made, and the action only gives its
// descriptor the wanted number.

#include <fcntl.h>
#include <spawn.h>

#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "preload/files/opening.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/names/paths.h"
#include "preload/trace/recorder.h"

// An action as glibc keeps it since 2.2; newer versions only added kinds. glibc names it so.
struct __spawn_action {  // NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
  enum Kind : int { close = 0, dup2 = 1, open = 2, chdir = 3, fchdir = 4 } kind;
  union {
    struct {
      int fd;
    } of_close;  ///< of fchdir, too
    struct {
      int fd, to;
    } of_dup2;
    struct {
      int fd;
      char* path;
      int flags;
      mode_t mode;
    } of_open;
    struct {
      char* path;
    } of_chdir;
  };
};

namespace iosig::preload {
namespace {

using Action = __spawn_action;

/// A number for a descriptor of this process in the child's actions, which the program's own actions do not use.
constexpr int min_number = 512;

/// The file actions of a program, with those opened that concern containers.
class Actions {
 public:
  Actions() = default;
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  ~Actions() {
    for (std::size_t n = 0; n < count_; ++n) (void)hook::close(opened_[n]);
    if (is_made_) (void)::posix_spawn_file_actions_destroy(&made_);
  }

  /// Returns 0 or errno, as posix_spawn(3).
  int take(const posix_spawn_file_actions_t& given) {
    const std::span<const Action> actions(given.__actions, static_cast<std::size_t>(given.__used));
    if (!concerns_containers(actions)) return 0;
    for (const Action& action : actions)
      if (action.kind > Action::fchdir) return 0;  // it might close what is opened here: as without this library
    if (const int failure = ::posix_spawn_file_actions_init(&made_); failure != 0) return failure;
    is_made_ = true;
    Fd directory;  // where the child is
    for (const Action& action : actions) {
      const int failure = add(action, directory);
      if (failure != 0) return failure;
    }
    return 0;
  }

  /// What posix_spawn(3) gets instead of `given`.
  [[nodiscard]] const posix_spawn_file_actions_t* used(const posix_spawn_file_actions_t* given) const {
    return is_made_ ? &made_ : given;
  }

 private:
  static int at(const Fd& directory) { return directory ? directory.get() : AT_FDCWD; }

  static bool concerns_containers(std::span<const Action> actions) {
    Fd directory;
    for (const Action& action : actions) {
      if (action.kind == Action::open && is_opened_here(action, directory)) return true;
      if (move(action, directory) != 0) return false;
    }
    return false;
  }

  /// Names of descriptors (/dev/stdin) mean the child's.
  static bool is_opened_here(const Action& action, const Fd& directory) {
    const auto& open = action.of_open;
    return named_descriptor(open.path) < 0 && concerns_container(at(directory), open.path, open.flags);
  }

  /// Opens the child's working directory after an action that changes it. Returns 0 or errno.
  static int move(const Action& action, Fd& directory) {
    const bool moves = action.kind == Action::chdir || action.kind == Action::fchdir;
    if (!moves) return 0;
    const int from = action.kind == Action::chdir ? at(directory) : action.of_close.fd;
    const char* const path = action.kind == Action::chdir ? action.of_chdir.path : ".";
    Fd opened(::openat(from, path, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!opened) return errno;
    directory = std::move(opened);
    return 0;
  }

  int add(const Action& action, Fd& directory) {
    switch (action.kind) {
      case Action::close: return ::posix_spawn_file_actions_addclose(&made_, action.of_close.fd);
      case Action::dup2: return ::posix_spawn_file_actions_adddup2(&made_, action.of_dup2.fd, action.of_dup2.to);
      case Action::chdir:
        if (const int failure = move(action, directory); failure != 0) return failure;
        return ::posix_spawn_file_actions_addchdir_np(&made_, action.of_chdir.path);
      case Action::fchdir:
        if (const int failure = move(action, directory); failure != 0) return failure;
        return ::posix_spawn_file_actions_addfchdir_np(&made_, action.of_close.fd);
      case Action::open: break;
    }
    const auto& open = action.of_open;
    if (!is_opened_here(action, directory))
      return ::posix_spawn_file_actions_addopen(&made_, open.fd, open.path, open.flags, open.mode);
    if (count_ == opened_.size()) return EMFILE;
    const int opened = open_at(at(directory), open.path, open.flags | O_CLOEXEC, open.mode);
    if (opened < 0) return errno;
    const int fd = hook::fcntl(opened, F_DUPFD_CLOEXEC, min_number);
    const int failure = errno;
    (void)hook::close(opened);
    if (fd < 0) return failure;
    opened_[count_++] = fd;
    return ::posix_spawn_file_actions_adddup2(&made_, fd, open.fd);
  }

  bool is_made_ = false;
  posix_spawn_file_actions_t made_{};
  std::array<int, 64> opened_{};
  std::size_t count_ = 0;
};

/// Calls spawn(actions) with the actions that open the program's files.
template <class Spawn>
int with_files(const posix_spawn_file_actions_t* given, Spawn spawn) {
  if (given == nullptr || given->__used == 0 || is_stray_child()) return spawn(given);
  const CancellationOff uncancelled;  // as in libc's own
  const int before = errno;
  Actions actions;
  const int failure = actions.take(*given);
  errno = before;
  return failure != 0 ? failure : spawn(actions.used(given));
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

int hook::posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                      const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  if (trace::is_tracing) trace::share_descriptions();
  return with_files(actions, [&](const posix_spawn_file_actions_t* used) {
    return real().posix_spawn(child, path, used, attributes, arguments, environment);
  });
}
int hook::posix_spawnp(pid_t* child, const char* name, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const* arguments, char* const* environment) {
  if (trace::is_tracing) trace::share_descriptions();
  return with_files(actions, [&](const posix_spawn_file_actions_t* used) {
    return real().posix_spawnp(child, name, used, attributes, arguments, environment);
  });
}
