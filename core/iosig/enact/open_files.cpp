#include "iosig/enact/open_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <climits>
#include <filesystem>
#include <system_error>

#include "iosig/base/text.h"
#include "iosig/enact/change_watch.h"
#include "iosig/enact/own_file.h"

namespace iosig {

namespace {

bool is_this_program(const std::filesystem::path& process) {
  struct stat its {
  }, ours{};
  return ::stat((process / "exe").c_str(), &its) == 0 && ::stat("/proc/self/exe", &ours) == 0 &&
         its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
}

std::string target_of(const std::filesystem::path& link) {
  std::array<char, PATH_MAX> text;  // one call for each link; std::filesystem::read_symlink makes two
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  return {text.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

/// Calls visit(link, path) for the open files of a process, until it returns true. Returns whether it did.
template <class Visit>
bool any_file_of(const std::filesystem::path& process, const Visit& visit) {
  std::error_code ignored;  // processes may exit meanwhile, and those of others cannot be read
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator fd(process / "fd", ignored); fd != end; fd.increment(ignored))
    if (visit(fd->path(), target_of(fd->path()))) return true;
  return false;
}

/// Calls visit(pid) for all processes, until it returns true. Returns whether it did.
template <class Visit>
bool any_process(const Visit& visit) {
  std::error_code ignored;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator process("/proc", ignored); process != end; process.increment(ignored)) {
    const std::string name = process->path().filename();
    int pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc{} && visit(pid)) return true;
  }
  return false;
}

std::filesystem::path process_at(int pid) { return fmt::format("/proc/{}", pid); }

/// Adds the paths that the process has open below a directory of this user. Ignores the open directories of another
/// iosig, which do not prevent settling.
void add_files_of(int pid, OpenFiles& open) {
  const std::string ours = fmt::format("/{}/", user_directory_name());
  const std::filesystem::path process = process_at(pid);
  const auto note = [&](const std::filesystem::path& link, const std::string& target) {
    if (target.find(ours) == std::string::npos) return false;
    if (struct stat file{}; is_this_program(process) && ::stat(link.c_str(), &file) == 0 && S_ISDIR(file.st_mode))
      return false;
    open.emplace(target, pid);
    return false;
  };
  (void)note(process / "cwd", target_of(process / "cwd"));
  (void)any_file_of(process, note);
}

}  // namespace

bool runs_this_program(int pid) { return is_this_program(process_at(pid)); }

OpenFiles open_redirected_files() {
  OpenFiles open;
  (void)any_process([&](int pid) {
    add_files_of(pid, open);
    return false;
  });
  return open;
}

bool is_open_in_another_process(int file) {
  const std::string wanted = target_of(fmt::format("/proc/self/fd/{}", file));
  return any_process([&](int pid) {
    return pid != ::getpid() && any_file_of(process_at(pid), [&](const std::filesystem::path& /*link*/,
                                                                 const std::string& path) { return path == wanted; });
  });
}

int user_of(const OpenFiles& open, const std::string& path) {
  if (const auto exact = open.find(path); exact != open.end()) return exact->second;
  const auto below = open.lower_bound(path + "/");
  return below != open.end() && below->first.starts_with(path + "/") ? below->second : 0;
}

int present_user_of(const OpenFiles& open, const std::string& path) {
  const int was = user_of(open, path);
  if (was == 0) return 0;
  OpenFiles now;
  add_files_of(was, now);
  if (user_of(now, path) != 0) return was;
  now = open_redirected_files();  // `open` names one process for each file
  return user_of(now, path);
}

bool is_in_use(const Destination& destination) {
  const auto has_it_open = [&](const std::string& name) {
    const Fd file = open_own_to_read(destination.data.directory.get(), name);
    return file && is_open_elsewhere(file.get());
  };
  if (has_it_open(destination.data.name)) return true;
  for (const Companion& companion : destination.companions)
    if (companion.kind == Companion::Kind::file && has_it_open(companion.name)) return true;
  return false;
}

}  // namespace iosig
