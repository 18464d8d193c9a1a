#include "iosig/container/read/dropping_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "iosig/base/kept_fds.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr std::size_t compared_bytes = 1 << 20;  ///< of two droppings at once
constexpr int plain_flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;

}  // namespace

DroppingReader::Place DroppingReader::place_of(Dropping kind, std::int64_t id) const {
  return {kind == Dropping::data ? directory_.target_of(id) : -1,
          id % static_cast<std::int64_t>(directory_.manifest().subdirectories)};
}

void DroppingReader::open_directories(const std::vector<std::int64_t>& ids) {
  for (const std::int64_t id : ids)
    for (const Dropping kind : {Dropping::data, Dropping::index}) {
      if (directories_.contains(place_of(kind, id))) continue;
      directories_.emplace(place_of(kind, id), directory_.open_subdirectory(kind, id));
    }
}

/// Returns the descriptor of the dropping's directory; -1 if there is none.
Result<int> DroppingReader::directory_of(Dropping kind, std::int64_t id) const {
  const Result<Fd>& opened = directories_.find(place_of(kind, id))->second;
  if (opened) return opened->get();
  const int failure = opened.error().system_errno;
  if (failure != 0 && failure != ENOENT) return pass_on(opened.error());
  return -1;
}

Result<std::optional<Fd>> DroppingReader::open(Dropping kind, std::int64_t id) const {
  const auto directory = directory_of(kind, id);
  if (!directory) return pass_on(directory.error());
  if (*directory < 0) return std::optional<Fd>();
  Fd fd = open_file_at(*directory, dropping_name(kind, id).c_str(), plain_flags);
  if (fd) return std::optional(std::move(fd));
  if (errno == ENOENT) return std::optional<Fd>();
  return system_failure("open", directory_.shown(kind, id));
}

Result<std::optional<struct stat>> DroppingReader::status(Dropping kind, std::int64_t id) const {
  const auto directory = directory_of(kind, id);
  if (!directory) return pass_on(directory.error());
  struct stat status {};
  if (*directory < 0) return std::optional<struct stat>();
  if (::fstatat(*directory, dropping_name(kind, id).c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
    return std::optional(status);
  if (errno == ENOENT) return std::optional<struct stat>();
  return system_failure("inspect", directory_.shown(kind, id));
}

Result<std::optional<std::string>> DroppingReader::read(Dropping kind, std::int64_t id) const {
  auto fd = open(kind, id);
  if (!fd) return pass_on(std::move(fd.error()));
  if (!*fd) return std::optional<std::string>();
  struct stat status {};
  if (::fstat((*fd)->get(), &status) != 0) return system_failure("inspect", directory_.shown(kind, id));
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::system, "'{}' is not a regular file", printable(directory_.shown(kind, id)));
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t got = ::pread((*fd)->get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", directory_.shown(kind, id));
    if (got == 0) bytes.resize(done);
    done += static_cast<std::size_t>(got);
  }
  return std::optional(std::move(bytes));
}

bool DroppingReader::have_same_data(std::int64_t one, std::int64_t other) const {
  const auto open_data = [&](std::int64_t id) { return directory_.open_dropping(Dropping::data, id, O_RDONLY); };
  const Fd fds[] = {open_data(one), open_data(other)};
  std::array<std::vector<char>, 2> parts;
  for (off_t at = 0;; at += static_cast<off_t>(parts[0].size())) {
    for (std::size_t n = 0; n < 2; ++n) {
      parts[n].resize(compared_bytes);
      const ssize_t got = fds[n] ? ::pread(fds[n].get(), parts[n].data(), parts[n].size(), at) : -1;
      if (got < 0) return false;
      parts[n].resize(static_cast<std::size_t>(got));
    }
    if (parts[0] != parts[1]) return false;
    if (parts[0].empty()) return true;
  }
}

}  // namespace iosig
