#include "iosig/base/trust.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr int max_links = 40;  // as in the kernel

/// Returns whether this process is root, and not merely mapped to uid 0 in a user namespace.
bool is_root() {
  if (::geteuid() != 0) return false;
  static const bool maps_all = [] {
    const auto map = read_file("/proc/self/uid_map");
    unsigned long inside = 0, outside = 0, count = 0;
    return !map || std::sscanf(map->c_str(), "%lu %lu %lu", &inside, &outside, &count) != 3 ||
           (inside == 0 && outside == 0 && count == UINT_MAX);
  }();
  return maps_all;
}

bool is_own_group(gid_t group) {
  if (group == ::getegid()) return true;
  std::vector<gid_t> groups(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0)));
  groups.resize(static_cast<std::size_t>(std::max(::getgroups(static_cast<int>(groups.size()), groups.data()), 0)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

std::string owner_and_mode(const struct stat& status) {
  return fmt::format("user {}, mode {:04o}", status.st_uid, status.st_mode & 07777);
}

/// Returns why untrusted users can write the file or directory; empty if they cannot.
std::string weakness(const struct stat& status, bool only_root) {
  if (only_root && status.st_uid != 0) return "belongs to another user, whom root does not trust";
  if ((status.st_mode & S_IWOTH) != 0) return "can be written by every user";
  if (only_root && (status.st_mode & S_IWGRP) != 0) return "can be written by its group, which root does not trust";
  return {};
}

/// Walks from / down to a path and checks each directory and each entry taken from it.
class Walk {
 public:
  /// `only_root`: only root is trusted.
  Walk(std::string_view path, bool only_root) : only_root_(only_root) { go_to(path); }

  /// Fails with `system` at the first weak directory or entry. Returns the status of the final entry, or nothing if it
  /// is missing.
  Result<std::optional<struct stat>> run() {
    if (auto entered = enter("/"); !entered) return pass_on(entered.error());
    while (!ahead_.empty()) {
      const std::string name = std::move(ahead_.back());
      ahead_.pop_back();
      if (name.empty() || name == ".") continue;
      if (name == "..") {
        if (auto entered = enter(here_.substr(0, std::max<std::size_t>(here_.rfind('/'), 1))); !entered)
          return pass_on(entered.error());
        continue;
      }
      const std::string next = (here_ == "/" ? "" : here_) + "/" + name;
      struct stat status {};
      if (::lstat(next.c_str(), &status) != 0) {
        if (errno == ENOENT) return std::nullopt;
        return system_failure("inspect", next);
      }
      if (auto sound = check_entry(next, status); !sound) return pass_on(sound.error());
      if (S_ISLNK(status.st_mode)) {
        if (auto followed = follow(next); !followed) return pass_on(followed.error());
      } else if (S_ISDIR(status.st_mode)) {
        if (auto entered = enter(next, status); !entered) return pass_on(entered.error());
      } else {
        return ahead_.empty() ? Result<std::optional<struct stat>>(status) : system_failure("open", next, ENOTDIR);
      }
    }
    return status_;
  }

 private:
  void go_to(std::string_view path) {
    while (!path.empty()) {
      const std::size_t slash = path.rfind('/');
      ahead_.emplace_back(path.substr(slash + 1));  // npos + 1 == 0
      path = path.substr(0, slash == std::string_view::npos ? 0 : slash);
    }
  }

  Result<void> enter(const std::string& directory) {
    struct stat status {};
    if (::lstat(directory.c_str(), &status) != 0) return system_failure("inspect", directory);
    return enter(directory, status);
  }

  Result<void> enter(std::string directory, const struct stat& status) {
    here_ = std::move(directory);
    status_ = status;
    const std::string weak = weakness(status_, only_root_);
    const bool is_sticky = (status_.st_mode & S_ISVTX) != 0;
    const bool root_owns = !only_root_ || status_.st_uid == 0;
    if (weak.empty() || (is_sticky && root_owns)) return {};
    return fail(ErrorKind::system,
                "the directory '{}' ({}) {}{}: another user could replace its "
                "entries; fix this ({}), or use another directory",
                printable(here_), owner_and_mode(status_), weak, root_owns ? " and lacks the sticky bit" : "",
                root_owns ? "chmod o-w,g-w or chmod +t" : "chown it");
  }

  /// In a directory that untrusted users can write, the sticky bit lets only the owner of an entry replace it.
  Result<void> check_entry(const std::string& path, const struct stat& status) const {
    if (weakness(status_, only_root_).empty() || status.st_uid == 0 || (!only_root_ && status.st_uid == ::geteuid()))
      return {};
    if (!only_root_ && S_ISDIR(status.st_mode) && (status.st_mode & S_IWOTH) == 0 && is_own_group(status.st_gid))
      return {};  // a project's directory
    return fail(ErrorKind::system,
                "'{}' ({}) belongs to another user, who may have planted it: others can write its "
                "directory; use one of your own",
                printable(path), owner_and_mode(status));
  }

  Result<void> follow(const std::string& link) {
    char target[PATH_MAX];
    const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
    if (length < 0) return system_failure("read the link", link);
    if (++links_ > max_links) return system_failure("follow", link, ELOOP);
    go_to({target, static_cast<std::size_t>(length)});
    return length > 0 && target[0] == '/' ? enter("/") : Result<void>{};
  }

  bool only_root_;
  std::string here_;  ///< without symbolic links
  struct stat status_ {};
  std::vector<std::string> ahead_;  ///< remaining names, the next one last
  int links_ = 0;
};

Result<std::optional<struct stat>> walk_to(const std::string& path, bool only_root) {
  if (path.starts_with('/')) return Walk(path, only_root).run();
  char here[PATH_MAX];
  if (::getcwd(here, sizeof here) == nullptr) return system_failure("ask for", "the working directory");
  return Walk(fmt::format("{}/{}", here, path), only_root).run();
}

}  // namespace

Result<void> check_directory(const std::string& directory) {
  return walk_to(directory, is_root()).map([](const auto&) {});
}

Result<std::string> read_configuration(const std::string& path, Configuration how) {
  const bool only_root = is_root() && how == Configuration::found;
  const auto status = walk_to(path, only_root);
  if (!status) return fail(status.error().kind, "{} is not used: {}", printable(path), status.error().message);
  if (*status && S_ISREG((*status)->st_mode))
    if (const std::string weak = weakness(**status, only_root); !weak.empty())
      return fail(ErrorKind::bad_input, "{} ({}) {}, so it is not used; mend that with chown or chmod go-w",
                  printable(path), owner_and_mode(**status), weak);
  return read_file(path, largest_configuration_bytes);
}

}  // namespace iosig
