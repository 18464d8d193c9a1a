#include "iosig/container/layout/container_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>

#include "iosig/base/kept_fds.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr std::array<std::string_view, 3> prefixes = {"data.", "index.", "tail."};
constexpr std::int64_t max_ids = std::int64_t{1} << 48;

}  // namespace

std::string dropping_name(Dropping kind, std::int64_t id) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), id).ptr;
  return std::string(prefixes[static_cast<std::size_t>(kind)]).append(digits.data(), end);
}

std::string subdirectory_name(std::int64_t number) { return fmt::format("d{}", number); }

std::optional<DroppingName> parse_dropping_name(std::string_view name) {
  for (std::size_t kind = 0; kind < prefixes.size(); ++kind) {
    if (!name.starts_with(prefixes[kind])) continue;
    const std::string_view digits = name.substr(prefixes[kind].size());
    // A number has one name: no sign, and no zero before it.
    if (digits.empty() || digits[0] == '-' || (digits[0] == '0' && digits.size() > 1)) return {};
    std::int64_t id = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
    const bool is_whole = failure == std::errc() && end == digits.data() + digits.size();
    if (is_whole && id <= max_ids) return DroppingName{static_cast<Dropping>(kind), id};
  }
  return {};
}

SplitPath split_path(std::string_view path) {
  const std::string plain(without_trailing_slashes(path));
  const std::size_t slash = plain.rfind('/');
  if (slash == std::string::npos) return {".", plain};
  return {slash == 0 ? "/" : plain.substr(0, slash), plain.substr(slash + 1)};
}

std::string name_beside(std::string_view path, std::string_view what, std::string_view id) {
  const SplitPath at = split_path(path);
  return fmt::format("{}/.{}.iosig-{}-{}", at.directory, cut_to(at.name, 180), what, id);
}

bool is_hidden_name(std::string_view name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return name == container_manifest_name ||
         (name.starts_with('.') && (has(".iosig-new-") || has(".iosig-removed-") || has(".iosig-flat-")));
}

std::vector<std::string> hidden_beside(std::string_view path) {
  const SplitPath at = split_path(path);
  const Fd directory = open_file_at(AT_FDCWD, at.directory.c_str(), O_RDONLY | O_DIRECTORY);
  const auto names = directory ? names_in(directory) : Result<std::vector<std::string>>();
  std::vector<std::string> found;
  const std::string prefix = fmt::format(".{}.iosig-", cut_to(at.name, 180));
  for (const std::string& name : names.value_or(std::vector<std::string>()))
    if (name.starts_with(prefix)) found.push_back(at.directory + "/" + name);
  std::ranges::sort(found);
  return found;
}

std::string place_of(int directory) {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink(fmt::format("/proc/self/fd/{}", directory).c_str(), path.data(), path.size() - 1);
  return length <= 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(length));
}

bool is_container(const std::string& path) {
  struct stat status {};
  return ::stat(fmt::format("{}/{}", path, container_manifest_name).c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

ContainerDirectory::ContainerDirectory(std::string path, Fd directory, ContainerManifest manifest)
    : path_(std::move(path)), directory_(std::move(directory)), manifest_(std::move(manifest)) {
  for (const std::string& target : manifest_.targets)
    targets_.push_back(open_file_at(AT_FDCWD, target.c_str(), directory_flags));
}

Result<std::shared_ptr<const ContainerDirectory>> ContainerDirectory::open(const std::string& path,
                                                                           const std::string& shown) {
  Fd directory = open_file_at(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY);
  if (!directory && errno == ENOTDIR)
    return fail(ErrorKind::bad_input, "'{}' is an ordinary file, not a container", printable(shown));
  if (!directory) return system_failure("open the container", shown);
  const std::string name(container_manifest_name), manifest_shown = shown + "/" + name;
  auto text = read_file_in(directory, name, manifest_shown, max_manifest_bytes);
  if (!text && text.error().system_errno == EACCES)
    if (auto copy = read_file_in(directory, std::string(manifest_copy_name), manifest_shown, max_manifest_bytes))
      text = std::move(copy);
  if (!text && ::faccessat(directory.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
    return fail(ErrorKind::bad_input, "'{}' is a directory, not a container: it has no {}", printable(shown), name);
  if (!text) return pass_on(text.error());
  auto manifest = parse_container_manifest(*text, printable(manifest_shown));
  if (!manifest) return pass_on(std::move(manifest.error()));
  return std::shared_ptr<const ContainerDirectory>(
      new ContainerDirectory(shown, std::move(directory), *std::move(manifest)));
}

const Fd& ContainerDirectory::place_of(Dropping kind, std::int64_t id) const {
  const std::int64_t target = target_of(id);
  return kind == Dropping::data && target >= 0 ? targets_[static_cast<std::size_t>(target)] : directory_;
}

std::string ContainerDirectory::subdirectory_of(std::int64_t id) const {
  return subdirectory_name(id % static_cast<std::int64_t>(manifest_.subdirectories));
}

std::string ContainerDirectory::shown(Dropping kind, std::int64_t id) const {
  const std::int64_t target = target_of(id);
  const std::string& place =
      kind == Dropping::data && target >= 0 ? manifest_.targets[static_cast<std::size_t>(target)] : path_;
  return fmt::format("{}/{}/{}", place, subdirectory_of(id), dropping_name(kind, id));
}

Result<Fd> ContainerDirectory::open_subdirectory(Dropping kind, std::int64_t id, bool make) const {
  const Fd& place = place_of(kind, id);
  const std::string name = subdirectory_of(id);
  if (!place) return fail(ErrorKind::system, "cannot open '{}': its target is missing", shown(kind, id));
  Fd directory = open_file_at(place.get(), name.c_str(), directory_flags);
  if (!directory && errno == ENOENT && make) {
    // Created with mode 0700; share_piece() opens it to others.
    const bool is_made = ::mkdirat(place.get(), name.c_str(), 0700) == 0;
    if (!is_made && errno != EEXIST) return write_failure("make the directory of", shown(kind, id), errno);
    directory = open_file_at(place.get(), name.c_str(), directory_flags);
    if (!directory && is_made && errno == EACCES &&
        set_mode_at(place.get(), name.c_str(), 0700) == 0)  // a strict umask
      directory = open_file_at(place.get(), name.c_str(), directory_flags);
    if (directory && is_made)
      if (auto shared = share_piece(directory.get(), shown(kind, id)); !shared) {
        (void)::unlinkat(place.get(), name.c_str(), AT_REMOVEDIR);
        return pass_on(std::move(shared.error()));
      }
  }
  if (!directory) return system_failure("open the directory of", shown(kind, id));
  return directory;
}

int ContainerDirectory::stat_manifest(struct stat& status) const {
  const std::string name(container_manifest_name);
  return ::fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
}

Result<void> ContainerDirectory::share_piece(int fd, const std::string& shown) const {
  struct stat piece {
  }, manifest{};
  if (const int failure = stat_manifest(manifest); failure != 0)
    return system_failure("inspect the manifest of", path_, failure);
  if (::fstat(fd, &piece) != 0) return system_failure("inspect", shown);
  const auto is_given = [&](uid_t user) { return ::fchown(fd, user, manifest.st_gid) == 0; };
  constexpr auto same_user = static_cast<uid_t>(-1);
  bool has_group = piece.st_gid == manifest.st_gid, has_owner = piece.st_uid == manifest.st_uid;
  if (!has_owner && is_given(manifest.st_uid)) has_owner = has_group = true;
  if (!has_group && is_given(same_user)) has_group = true;
  const unsigned mode = S_ISDIR(piece.st_mode) ? directory_mode_for(manifest.st_mode) | (piece.st_mode & S_ISGID)
                                               : piece_mode_for(manifest.st_mode);
  if (!has_owner && (mode & (has_group ? 0044U : 0004U)) == 0)
    return fail_with_errno(
        EACCES, ErrorKind::system,
        "cannot make '{}': the owner of '{}' could not read it; a user who is not the owner can write "
        "a container only if its mode, {:04o}, lets the owner read the user's own files",
        printable(shown), printable(path_), manifest.st_mode & 07777);
  if ((piece.st_mode & 07777) == mode || ::fchmod(fd, mode) == 0) return {};
  return has_owner ? Result<void>() : system_failure("set the permissions of", shown);
}

Fd ContainerDirectory::open_dropping(Dropping kind, std::int64_t id, int flags, unsigned mode) const {
  const Fd& place = place_of(kind, id);
  if (!place) {
    errno = ENXIO;
    return {};
  }
  const Fd directory = open_file_at(place.get(), subdirectory_of(id).c_str(), directory_flags);
  if (!directory) return {};
  return open_file_at(directory.get(), dropping_name(kind, id).c_str(), flags | O_NOFOLLOW | O_NONBLOCK, mode);
}

int ContainerDirectory::unlink_dropping(Dropping kind, std::int64_t id) const {
  const auto directory = open_subdirectory(kind, id);
  if (directory) return ::unlinkat(directory->get(), dropping_name(kind, id).c_str(), 0);
  errno = place_of(kind, id) ? directory.error().system_errno : ENXIO;
  return -1;
}

void ContainerDirectory::delete_data_and_index(std::int64_t id) const {
  if (unlink_dropping(Dropping::data, id) == 0 || errno == ENOENT) (void)unlink_dropping(Dropping::index, id);
}

}  // namespace iosig
