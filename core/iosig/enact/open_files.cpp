#include "iosig/enact/open_files.h"

#include <fcntl.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "iosig/base/text.h"
#include "iosig/enact/change_watch.h"
#include "iosig/enact/own_file.h"

namespace iosig {

OpenFiles open_redirected_files() {
  const std::string ours = fmt::format("/{}/", user_folder_name());
  OpenFiles open;
  std::error_code ignored;  // processes end while we look, and others' are closed to us
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator process("/proc", ignored); process != end; process.increment(ignored)) {
    const std::string name = process->path().filename();
    int pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc{}) continue;
    const auto note = [&](const std::filesystem::path& link) {
      const std::string target = std::filesystem::read_symlink(link, ignored);
      if (target.find(ours) != std::string::npos) open.emplace(target, pid);
    };
    note(process->path() / "cwd");
    for (std::filesystem::directory_iterator fd(process->path() / "fd", ignored); fd != end; fd.increment(ignored))
      note(fd->path());
  }
  return open;
}

int user_of(const OpenFiles& open, const std::string& path) {
  if (const auto exact = open.find(path); exact != open.end()) return exact->second;
  const auto below = open.lower_bound(path + "/");
  return below != open.end() && below->first.starts_with(path + "/") ? below->second : 0;
}

bool is_in_use(const Destination& destination) {
  const auto has_it_open = [&](const std::string& name) {
    const Fd file = open_own_to_read(destination.data.folder.get(), name);
    return file && is_open_elsewhere(file.get());
  };
  if (has_it_open(destination.data.name)) return true;
  for (const Companion& companion : destination.companions)
    if (companion.kind == Companion::Kind::file && has_it_open(companion.name)) return true;
  return false;
}

}  // namespace iosig
