#include "draft_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>

namespace iosig::cli {
namespace {

mode_t mode_of_new_file() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

}  // namespace

Result<DraftFile> DraftFile::open(const std::string& path) {
  DraftFile made;
  if (path.empty() || path == "-") return made;
  made.path_ = path;
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) return system_failure("write", path);
  if (exists && ::access(path.c_str(), W_OK) != 0) return system_failure("write", path);
  if (exists && !S_ISREG(status.st_mode)) {
    made.file_ = Fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!made.file_) return system_failure("write", path);
    return made;
  }
  if (const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), &std::free); real)
    made.path_ = real.get();
  const std::size_t name = made.path_.find_last_of('/') + 1;  // 0: in this directory
  constexpr std::size_t longest = 200;                        // of the name, which gets longer
  std::string draft = made.path_.substr(0, name) + "." + made.path_.substr(name, longest) + ".XXXXXX";
  made.file_ = Fd(::mkostemp(draft.data(), O_CLOEXEC));
  if (!made.file_) return system_failure("write", path);
  made.draft_ = std::move(draft);
  if (::fchmod(made.file_.get(), exists ? status.st_mode & 07777 : mode_of_new_file()) != 0)
    return system_failure("write", path);
  return made;
}

DraftFile::~DraftFile() {
  if (!draft_.empty()) (void)::unlink(draft_.c_str());
}

Result<void> DraftFile::write(std::string_view bytes) {
  return file_ ? write_all(file_.get(), bytes, path_) : write_all(STDOUT_FILENO, bytes, "standard output");
}

Result<void> DraftFile::finish() {
  if (draft_.empty()) return {};
  // The data first: a machine that fails must not leave an empty file in the place of the older one.
  if (::fsync(file_.get()) != 0 || ::close(file_.release()) != 0 || ::rename(draft_.c_str(), path_.c_str()) != 0)
    return system_failure("write", path_);
  draft_.clear();
  return {};
}

std::string DraftFile::directory() const {
  if (draft_.empty()) {
    std::error_code failure;
    const auto found = std::filesystem::temp_directory_path(failure);
    return failure ? "/tmp" : found.string();
  }
  const std::size_t slash = draft_.find_last_of('/');
  return slash == std::string::npos ? "." : draft_.substr(0, slash + 1);
}

}  // namespace iosig::cli
