#include "iosig/trace/import/strace_calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <span>
#include <unordered_map>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/trace/import/strace_line.h"

namespace iosig::trace {
namespace {

using enum StraceKind;

constexpr StraceRow rows[] = {
    {"open", open, Call::open},
    {"creat", open, Call::open},
    {"openat", open_at, Call::open},
    {"openat2", open_at, Call::open},
    {"close", close, Call::close},
    {"close_range", close_range, Call::none},
    {"read", at_file_offset, Call::read},
    {"write", at_file_offset, Call::write},
    {"readv", pieces, Call::readv},
    {"writev", pieces, Call::writev},
    {"pread64", at_offset, Call::pread},
    {"pwrite64", at_offset, Call::pwrite},
    {"pread", at_offset, Call::pread},
    {"pwrite", at_offset, Call::pwrite},
    {"preadv", pieces_at_offset, Call::preadv},
    {"pwritev", pieces_at_offset, Call::pwritev},
    {"preadv2", pieces_at_offset, Call::preadv},
    {"pwritev2", pieces_at_offset, Call::pwritev},
    {"lseek", seek, Call::lseek},
    {"fsync", descriptor, Call::fsync},
    {"fdatasync", descriptor, Call::fdatasync},
    {"syncfs", descriptor, Call::syncfs},
    {"flock", descriptor, Call::flock},
    {"fchmod", descriptor, Call::fchmod},
    {"fchown", descriptor, Call::fchown},
    {"getdents", descriptor, Call::readdir},
    {"getdents64", descriptor, Call::readdir},
    {"fstatfs", descriptor, Call::statfs},
    {"fsetxattr", descriptor, Call::setxattr},
    {"fgetxattr", descriptor, Call::getxattr},
    {"flistxattr", descriptor, Call::listxattr},
    {"fremovexattr", descriptor, Call::removexattr},
    {"sync_file_range", range, Call::sync_file_range},
    {"fadvise64", range, Call::posix_fadvise},
    {"readahead", range, Call::readahead},
    {"ftruncate", size, Call::ftruncate},
    {"fallocate", fallocate, Call::fallocate},
    {"fstat", status, Call::fstat},
    {"dup", duplicate, Call::dup},
    {"dup2", duplicate, Call::dup},
    {"dup3", duplicate, Call::dup},
    {"fcntl", fcntl, Call::fcntl},
    {"mmap", map, Call::mmap},
    {"sendfile", send, Call::sendfile},
    {"copy_file_range", copy, Call::copy_file_range},
    {"splice", copy, Call::splice},
    {"stat", by_path, Call::stat},
    {"lstat", by_path, Call::stat},
    {"access", by_path, Call::access},
    {"chmod", by_path, Call::chmod},
    {"chown", by_path, Call::chown},
    {"lchown", by_path, Call::chown},
    {"utime", by_path, Call::utime},
    {"utimes", by_path, Call::utime},
    {"unlink", by_path, Call::unlink},
    {"rmdir", by_path, Call::rmdir},
    {"mkdir", by_path, Call::mkdir},
    {"mknod", by_path, Call::mknod},
    {"statfs", by_path, Call::statfs},
    {"readlink", by_path, Call::readlink},
    {"setxattr", by_path, Call::setxattr},
    {"lsetxattr", by_path, Call::setxattr},
    {"getxattr", by_path, Call::getxattr},
    {"lgetxattr", by_path, Call::getxattr},
    {"listxattr", by_path, Call::listxattr},
    {"llistxattr", by_path, Call::listxattr},
    {"removexattr", by_path, Call::removexattr},
    {"lremovexattr", by_path, Call::removexattr},
    {"truncate", path_size, Call::truncate},
    {"newfstatat", status_at, Call::stat},
    {"statx", status_at, Call::stat},
    {"faccessat", path_at, Call::access},
    {"faccessat2", path_at, Call::access},
    {"fchmodat", path_at, Call::chmod},
    {"fchmodat2", path_at, Call::chmod},
    {"fchownat", path_at, Call::chown},
    {"utimensat", path_at, Call::utime},
    {"futimesat", path_at, Call::utime},
    {"mkdirat", path_at, Call::mkdir},
    {"mknodat", path_at, Call::mknod},
    {"readlinkat", path_at, Call::readlink},
    {"unlinkat", unlink_at, Call::unlink},
    {"rename", two_paths, Call::rename},
    {"link", two_paths, Call::link},
    {"renameat", two_paths_at, Call::rename},
    {"renameat2", two_paths_at, Call::rename},
    {"linkat", two_paths_at, Call::link},
    {"symlink", new_link, Call::symlink},
    {"symlinkat", new_link_at, Call::symlink},
    {"chdir", change_directory, Call::chdir},
    {"fchdir", change_directory_to, Call::chdir},
    {"getcwd", get_directory, Call::none},
    {"execve", execute, Call::none},
    {"execveat", execute_at, Call::none},
    {"fork", fork, Call::none},
    {"vfork", fork, Call::none},
    {"clone", fork, Call::none},
    {"clone3", fork, Call::none},
};

using Constant = std::pair<std::string_view, std::int64_t>;

constexpr Constant open_flags[] = {
    {"O_RDONLY", O_RDONLY},       {"O_WRONLY", O_WRONLY},     {"O_RDWR", O_RDWR},       {"O_CREAT", O_CREAT},
    {"O_EXCL", O_EXCL},           {"O_NOCTTY", O_NOCTTY},     {"O_TRUNC", O_TRUNC},     {"O_APPEND", O_APPEND},
    {"O_NONBLOCK", O_NONBLOCK},   {"O_DSYNC", O_DSYNC},       {"O_SYNC", O_SYNC},       {"O_DIRECT", O_DIRECT},
    {"O_DIRECTORY", O_DIRECTORY}, {"O_NOFOLLOW", O_NOFOLLOW}, {"O_NOATIME", O_NOATIME}, {"O_CLOEXEC", O_CLOEXEC},
    {"O_PATH", O_PATH},           {"O_TMPFILE", O_TMPFILE},   {"O_LARGEFILE", 0},       {"O_ASYNC", O_ASYNC},
    {"O_ACCMODE", O_ACCMODE},
};
constexpr Constant whences[] = {{"SEEK_SET", SEEK_SET},
                                {"SEEK_CUR", SEEK_CUR},
                                {"SEEK_END", SEEK_END},
                                {"SEEK_DATA", SEEK_DATA},
                                {"SEEK_HOLE", SEEK_HOLE}};
constexpr Constant commands[] = {{"F_DUPFD", F_DUPFD},           {"F_DUPFD_CLOEXEC", F_DUPFD_CLOEXEC},
                                 {"F_GETFD", F_GETFD},           {"F_SETFD", F_SETFD},
                                 {"F_GETFL", F_GETFL},           {"F_SETFL", F_SETFL},
                                 {"F_GETLK", F_GETLK},           {"F_SETLK", F_SETLK},
                                 {"F_SETLKW", F_SETLKW},         {"F_OFD_GETLK", F_OFD_GETLK},
                                 {"F_OFD_SETLK", F_OFD_SETLK},   {"F_OFD_SETLKW", F_OFD_SETLKW},
                                 {"F_GETOWN", F_GETOWN},         {"F_SETOWN", F_SETOWN},
                                 {"F_SETPIPE_SZ", F_SETPIPE_SZ}, {"F_GETPIPE_SZ", F_GETPIPE_SZ},
                                 {"F_ADD_SEALS", F_ADD_SEALS},   {"F_GET_SEALS", F_GET_SEALS}};

std::optional<std::int64_t> constant_of(std::string_view text, std::span<const Constant> known) {
  for (const auto& [name, value] : known)
    if (name == text) return value;
  return strace_number(text);
}

}  // namespace

const StraceRow* strace_row(std::string_view name) {
  static const auto by_name = [] {
    std::unordered_map<std::string_view, const StraceRow*> known;
    for (const StraceRow& row : rows) known.emplace(row.name, &row);
    return known;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

std::optional<std::int64_t> strace_open_flags(std::string_view text) {
  std::int64_t flags = 0;
  for (const std::string_view name : split(text, '|')) {
    const auto flag = constant_of(name, open_flags);
    if (!flag) return std::nullopt;
    flags |= *flag;
  }
  return flags;
}

std::optional<std::int64_t> strace_whence(std::string_view text) { return constant_of(text, whences); }

std::optional<std::int64_t> strace_fcntl_command(std::string_view text) { return constant_of(text, commands); }

}  // namespace iosig::trace
