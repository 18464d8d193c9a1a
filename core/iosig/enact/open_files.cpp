#include "iosig/enact/open_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <climits>
#include <filesystem>
#include <string_view>
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

/// Adds the paths that the process has open below a directory of this user. Ignores the open directories of another
/// iosig, which do not prevent settling.
void add_files_of(int pid, OpenFiles& open) {
  const std::string ours = fmt::format("/{}/", user_directory_name());
  const std::filesystem::path process = fmt::format("/proc/{}", pid);
  std::error_code ignored;  // processes may exit meanwhile, and those of others cannot be read
  const auto note = [&](const std::filesystem::path& link) {
    std::array<char, PATH_MAX> text;  // one call for each link; std::filesystem::read_symlink makes two
    const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
    const std::string_view target(text.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    if (target.find(ours) == std::string_view::npos) return;
    if (struct stat file{}; is_this_program(process) && ::stat(link.c_str(), &file) == 0 && S_ISDIR(file.st_mode))
      return;
    open.emplace(target, pid);
  };
  const std::filesystem::directory_iterator end;
  note(process / "cwd");
  for (std::filesystem::directory_iterator fd(process / "fd", ignored); fd != end; fd.increment(ignored))
    note(fd->path());
}

}  // namespace

bool runs_this_program(int pid) { return is_this_program(fmt::format("/proc/{}", pid)); }

OpenFiles open_redirected_files() {
  OpenFiles open;
  std::error_code ignored;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator process("/proc", ignored); process != end; process.increment(ignored)) {
    const std::string name = process->path().filename();
    int pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc{}) continue;
    add_files_of(pid, open);
  }
  return open;
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
