// The hooks, under names that other sources of this library can call: there the plain names (::read, ::write) bypass
// the hooks (real.h).
#pragma once

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

extern "C" {

ssize_t program_read(int fd, void* bytes, size_t count);
ssize_t program_write(int fd, const void* bytes, size_t count);
ssize_t program_pread(int fd, void* bytes, size_t count, off_t offset);
ssize_t program_pwrite(int fd, const void* bytes, size_t count, off_t offset);
off_t program_lseek(int fd, off_t offset, int whence) noexcept;
ssize_t program_preadv2(int fd, const struct iovec* parts, int count, off_t offset, int flags);
ssize_t program_pwritev2(int fd, const struct iovec* parts, int count, off_t offset, int flags);
int program_fsync(int fd);
int program_close(int fd);
int program_dup2(int fd, int to) noexcept;
int program_fcntl(int fd, int command, ...);
int program_fstat(int fd, struct stat* status) noexcept;
int program_fstatat(int directory, const char* path, struct stat* status, int flags) noexcept;
DIR* program_opendir(const char* path);
dirent* program_readdir(DIR* directory);

}  // extern "C"
