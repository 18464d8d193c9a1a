#include "iosig/container/read/data_verifier.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "iosig/base/crc32c.h"
#include "iosig/base/files.h"

namespace iosig {
namespace {

constexpr std::int64_t buffer_bytes = 1 << 20;

/// The checks of all data droppings of a container.
class DataChecker {
 public:
  DataChecker(const ContainerDirectory& directory, const std::function<void(std::int64_t)>& on_progress)
      : directory_(directory), on_progress_(on_progress), buffer_(static_cast<std::size_t>(buffer_bytes)) {}

  /// Compares the dropping of writer `id` with `checksums`.
  Result<void> check(std::int64_t id, const DataChecksums& checksums) {
    const Fd fd = directory_.open_dropping(Dropping::data, id, O_RDONLY | O_NONBLOCK);
    if (!fd && errno == ENOENT) return {};
    struct stat status {};
    if (!fd || ::fstat(fd.get(), &status) != 0) return system_failure("open", directory_.shown(Dropping::data, id));
    if (!S_ISREG(status.st_mode)) return {};
    std::int64_t at = 0;
    for (std::int64_t block = 0; block < checksums.count() && checksums.end_of(block) <= status.st_size; ++block) {
      const auto checksum = checksum_of(fd, id, at, checksums.end_of(block));
      if (!checksum) return pass_on(checksum.error());
      const bool is_same = *checksum == checksums.of(block);
      if (is_same)
        checked.verified_bytes += checksums.end_of(block) - at;
      else if (!checked.changed.empty() && checked.changed.back().id == id && checked.changed.back().end == at)
        checked.changed.back().end = checksums.end_of(block);
      else
        checked.changed.push_back({id, at, checksums.end_of(block)});
      at = checksums.end_of(block);
    }
    checked.unverified_bytes += status.st_size - at;
    return {};
  }

  DataCheck checked;

 private:
  Result<std::uint32_t> checksum_of(const Fd& fd, std::int64_t id, std::int64_t begin, std::int64_t end) {
    std::uint32_t checksum = 0;
    while (begin < end) {
      const auto wanted = static_cast<std::size_t>(std::min(buffer_bytes, end - begin));
      const ssize_t got = ::pread(fd.get(), buffer_.data(), wanted, begin);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return system_failure("read", directory_.shown(Dropping::data, id), got < 0 ? errno : EIO);
      checksum = crc32c(std::span(buffer_).first(static_cast<std::size_t>(got)), checksum);
      begin += got;
      done_ += got;
      if (on_progress_) on_progress_(done_);
    }
    return checksum;
  }

  const ContainerDirectory& directory_;
  const std::function<void(std::int64_t)>& on_progress_;
  std::vector<std::uint8_t> buffer_;
  std::int64_t done_ = 0;
};

}  // namespace

const DataChecksums* DataVerifier::of(std::int64_t id) {
  const std::lock_guard lock(mutex_);
  if (!closed_) {
    auto names = names_in(directory_.fd());  // list() would also list all droppings
    if (!names) return nullptr;
    std::erase_if(*names, [](const std::string& name) { return !name.starts_with(closed_writers_prefix); });
    auto read = ClosedWriters::read(directory_, *names);
    if (!read) return nullptr;
    closed_ = std::make_unique<const ClosedWriters>(*std::move(read));
  }
  const ClosedWriter* const closed = closed_->find(id);
  return closed == nullptr || closed->data.bytes == 0 ? nullptr : &closed->data;
}

std::string message_of(const ChangedData& changed, const ContainerDirectory& directory) {
  return fmt::format("'{}': bytes {} to {} were changed: they do not match their checksum",
                     directory.shown(Dropping::data, changed.id), changed.begin, changed.end);
}

Result<DataCheck> check_data(const ContainerDirectory& directory, const ContainerContent& content,
                             const std::function<void(std::int64_t)>& on_progress) {
  const ContainerDirectory::Listing listing = directory.list();
  const auto closed = ClosedWriters::read(directory, listing.closed_writers);
  if (!closed) return pass_on(closed.error());
  DataChecker checker(directory, on_progress);
  for (const std::int64_t id : listing.data) {
    DataChecksums checksums;
    const ClosedWriter* const record = closed->find(id);
    const auto writer = std::ranges::lower_bound(content.writers, id, {}, &WriterContent::id);
    std::array<std::uint8_t, sizeof(std::uint32_t)> packed{};
    if (record != nullptr && record->data.bytes > 0) {
      checksums = record->data;
    } else if (writer != content.writers.end() && writer->id == id && writer->synced && writer->synced->data > 0) {
      packed = packed_checksum(writer->synced->data_checksum);
      checksums = {writer->synced->data, writer->synced->data, packed};
    }
    if (auto done = checker.check(id, checksums); !done) return pass_on(std::move(done.error()));
  }
  return std::move(checker.checked);
}

}  // namespace iosig
