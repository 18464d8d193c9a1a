// A file system that fails on request: shows the directory SOURCE at MOUNT, and each operation named in the file FAULTS
// fails with the error beside it, for as long as it stands there.
//
//   faulty_fs SOURCE FAULTS MOUNT [-o OPTION of FUSE]...
//   echo 'fsync EDQUOT' > FAULTS
//
// Operations: look read write create fsync rename link unlink directory, symlink (makes one), readlink (of one that is
// absolute, as sshfs with contain_symlinks), transform (readlink gives such a one relative to the mount, as sshfs with
// transform_symlinks; any error), long (names of more than 143 bytes, as eCryptfs), rear (a read of the second half of
// a file), flip (each write stores a changed byte, and succeeds; any error), direct (at the start: the page cache does
// not answer reads; any error). Errors: EIO ENOSPC EDQUOT EROFS EPERM ENOSYS ENAMETOOLONG.
#define FUSE_USE_VERSION 31
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

std::string source, faults;

/// 0, or the negative error that `operation` is to fail with.
int fault(const std::string& operation) {
  static const std::map<std::string, int> errors{{"EIO", EIO},
                                                 {"ENOSPC", ENOSPC},
                                                 {"EDQUOT", EDQUOT},
                                                 {"EROFS", EROFS},
                                                 {"EPERM", EPERM},
                                                 {"ENOSYS", ENOSYS},
                                                 {"ENAMETOOLONG", ENAMETOOLONG}};
  std::ifstream lines(faults);
  for (std::string name, error; lines >> name >> error;)
    if (name == operation) return -errors.at(error);
  return 0;
}

std::string behind(const char* path) { return source + path; }

/// The answer of a system call, unless `operation` is to fail.
template <class Call>
int answer(const char* operation, Call call) {
  if (const int failure = fault(operation)) return failure;
  const auto result = call();
  return result < 0 ? -errno : static_cast<int>(result);
}

int fd_of(const fuse_file_info* info) { return static_cast<int>(info->fh); }

fuse_operations operations() {
  fuse_operations all{};
  all.init = [](fuse_conn_info*, fuse_config* config) -> void* {
    config->attr_timeout = config->entry_timeout = 0;  // a fault is felt at once
    config->hard_remove = fault("hidden") != 0 ? 0 : 1;
    config->direct_io = fault("direct") != 0 ? 1 : 0;
    return nullptr;
  };
  // A file that is open and was unlinked has no path any more.
  all.getattr = [](const char* path, struct stat* status, fuse_file_info* info) {
    if (path == nullptr) return answer("look", [&] { return ::fstat(fd_of(info), status); });
    if (std::strlen(std::strrchr(path, '/') + 1) > 143)
      if (const int failure = fault("long")) return failure;
    return answer(path[1] == '\0' ? "" : "look", [&] { return ::lstat(behind(path).c_str(), status); });
  };
  all.readlink = [](const char* path, char* target, size_t size) {
    const int length = answer("look", [&] { return ::readlink(behind(path).c_str(), target, size - 1); });
    if (length < 0) return length;
    target[length] = '\0';
    if (target[0] == '/' && fault("transform") != 0) target[0] = '.';
    return target[0] == '/' ? fault("readlink") : 0;
  };
  all.mkdir = [](const char* path, mode_t mode) {
    return answer("directory", [&] { return ::mkdir(behind(path).c_str(), mode); });
  };
  all.rmdir = [](const char* path) { return answer("directory", [&] { return ::rmdir(behind(path).c_str()); }); };
  all.unlink = [](const char* path) { return answer("unlink", [&] { return ::unlink(behind(path).c_str()); }); };
  all.symlink = [](const char* target, const char* path) {
    if (const int failure = fault("symlink")) return failure;
    return answer("create", [&] { return ::symlink(target, behind(path).c_str()); });
  };
  all.rename = [](const char* from, const char* to, unsigned flags) {
    return answer("rename",
                  [&] { return ::renameat2(AT_FDCWD, behind(from).c_str(), AT_FDCWD, behind(to).c_str(), flags); });
  };
  all.link = [](const char* from, const char* to) {
    return answer("link", [&] { return ::link(behind(from).c_str(), behind(to).c_str()); });
  };
  all.chmod = [](const char* path, mode_t mode, fuse_file_info*) {
    return answer("", [&] { return ::chmod(behind(path).c_str(), mode); });
  };
  all.chown = [](const char* path, uid_t user, gid_t group, fuse_file_info*) {
    return answer("", [&] { return ::lchown(behind(path).c_str(), user, group); });
  };
  all.utimens = [](const char* path, const timespec times[2], fuse_file_info*) {
    return answer("", [&] { return ::utimensat(AT_FDCWD, behind(path).c_str(), times, AT_SYMLINK_NOFOLLOW); });
  };
  all.truncate = [](const char* path, off_t size, fuse_file_info* info) {
    if (path == nullptr) return answer("write", [&] { return ::ftruncate(fd_of(info), size); });
    return answer("write", [&] { return ::truncate(behind(path).c_str(), size); });
  };
  all.open = [](const char* path, fuse_file_info* info) {
    const int fd = answer("look", [&] { return ::open(behind(path).c_str(), info->flags | O_NOFOLLOW); });
    info->fh = static_cast<std::uint64_t>(fd);
    return fd < 0 ? fd : 0;
  };
  all.create = [](const char* path, mode_t mode, fuse_file_info* info) {
    const int fd = answer("create", [&] { return ::open(behind(path).c_str(), info->flags, mode); });
    info->fh = static_cast<std::uint64_t>(fd);
    return fd < 0 ? fd : 0;
  };
  all.read = [](const char*, char* into, size_t length, off_t at, fuse_file_info* info) {
    struct stat status {};
    const bool is_rear = ::fstat(fd_of(info), &status) == 0 && at + static_cast<off_t>(length) > status.st_size / 2;
    if (const int failure = is_rear ? fault("rear") : 0) return failure;
    return answer("read", [&] { return ::pread(fd_of(info), into, length, at); });
  };
  all.write = [](const char*, const char* from, size_t length, off_t at, fuse_file_info* info) {
    std::string bytes(from, length);
    if (fault("flip") != 0) bytes[length / 2] ^= 1;
    return answer("write", [&] { return ::pwrite(fd_of(info), bytes.data(), length, at); });
  };
  all.fsync = [](const char*, int, fuse_file_info* info) {
    return answer("fsync", [&] { return ::fsync(fd_of(info)); });
  };
  all.release = [](const char*, fuse_file_info* info) { return ::close(fd_of(info)); };
  all.readdir = [](const char* path, void* names, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
    DIR* directory = ::opendir(behind(path).c_str());
    if (directory == nullptr) return -errno;
    while (const dirent* item = ::readdir(directory)) fill(names, item->d_name, nullptr, 0, fuse_fill_dir_flags{});
    ::closedir(directory);
    return fault("look");
  };
  all.statfs = [](const char*, struct statvfs* status) {
    return answer("", [&] { return ::statvfs(source.c_str(), status); });
  };
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::fprintf(stderr, "usage: %s SOURCE FAULTS MOUNT [-o OPTION]...\n", arguments[0]);
    return 2;
  }
  source = arguments[1];
  faults = arguments[2];
  std::vector<char*> own(arguments + 3, arguments + count);
  char in_foreground[] = "-f", on_one_thread[] = "-s";
  own.insert(own.begin(), {arguments[0], in_foreground, on_one_thread});
  const fuse_operations all = operations();
  return fuse_main(static_cast<int>(own.size()), own.data(), &all, nullptr);
}
