#include "file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "iosig/base/files.h"
#include "iosig/base/text.h"

namespace iosig::workloads {
namespace {

constexpr mode_t usual_mode = 0666;

class PosixFile : public File {
 public:
  PosixFile(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Result<void> write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t put = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset_bytes));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return write_failure("write", path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(put));
      offset_bytes += static_cast<std::uint64_t>(put);
    }
    return {};
  }

  Result<void> read(std::uint64_t offset_bytes, std::span<std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t got = ::pread(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset_bytes));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_failure("read", path_);
      if (got == 0)
        return fail(ErrorKind::infeasible, "'{}' ends at byte {}, but the workload goes on to {}", printable(path_),
                    offset_bytes, offset_bytes + bytes.size());
      bytes = bytes.subspan(static_cast<std::size_t>(got));
      offset_bytes += static_cast<std::uint64_t>(got);
    }
    return {};
  }

  Result<void> sync() override {
    if (::fsync(fd_.get()) != 0) return write_failure("sync", path_, errno);
    return {};
  }

 private:
  std::string path_;
  Fd fd_;
};

Result<std::uint64_t> size_of(const Fd& fd, const std::string& path) {
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return system_failure("look at", path);
  if (!S_ISREG(found.st_mode))
    return fail(ErrorKind::system, "'{}' is no ordinary file: workloads work on nothing else", printable(path));
  return static_cast<std::uint64_t>(found.st_size);
}

}  // namespace

Result<std::unique_ptr<File>> open_posix(const std::string& path, bool for_writing) {
  Fd fd(::open(path.c_str(), (for_writing ? O_WRONLY : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return system_failure("open", path);
  if (const auto size = size_of(fd, path); !size) return pass_on(size.error());
  return std::make_unique<PosixFile>(path, std::move(fd));
}

Result<void> create_file(const std::string& path, bool force) {
  if (Fd made(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, usual_mode)); made) return {};
  if (errno != EEXIST) return write_failure("create", path, errno);
  if (!force)
    return fail(ErrorKind::system, "'{}' exists already; name another target, or give --force to replace it",
                printable(path));
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return system_failure("open", path);
  if (const auto size = size_of(fd, path); !size) return pass_on(size.error());
  if (::ftruncate(fd.get(), 0) != 0) return system_failure("empty", path);
  return {};
}

Result<std::uint64_t> size_of(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return system_failure("open", path);
  return size_of(fd, path);
}

}  // namespace iosig::workloads
