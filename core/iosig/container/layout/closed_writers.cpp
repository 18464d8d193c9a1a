#include "iosig/container/layout/closed_writers.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "iosig/base/crc32c.h"
#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/size_limit.h"
#include "iosig/base/text.h"
#include "iosig/container/order/sequencer.h"

namespace iosig {
namespace {

constexpr std::uint64_t max_file_bytes = 1u << 30;
constexpr std::int64_t max_copied_bytes = 16 << 20;  ///< of one index
constexpr int append_flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK;

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string node_file_name() { return fmt::format("{}{}", closed_writers_prefix, node_since_boot()); }

/// Opens this node's file; creates it with the permissions that follow from the logical file. Invalid: impossible.
Fd open_for_append(const ContainerDirectory& directory) {
  const std::string name = node_file_name();
  constexpr unsigned mode = 0600;  // until share_piece() sets the mode
  Fd fd = open_file_at(directory.fd().get(), name.c_str(), append_flags);
  if (fd || errno != ENOENT) return fd;
  fd = open_file_at(directory.fd().get(), name.c_str(), append_flags | O_CREAT | O_EXCL, mode);
  if (!fd && errno == EEXIST) return open_file_at(directory.fd().get(), name.c_str(), append_flags);
  if (fd && !directory.share_piece(fd.get(), fmt::format("{}/{}", directory.path(), name))) {
    (void)::unlinkat(directory.fd().get(), name.c_str(), 0);
    return {};
  }
  return fd;
}

bool is_same_state(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_size == other.st_size &&
         unix_ns(one.st_mtim) == unix_ns(other.st_mtim);
}

/// Appends a frame to a file of records. One call, so that the records of two writers cannot mix. Readers skip a record
/// that was cut short.
bool append_frame_to(const Fd& file, const std::vector<std::uint8_t>& frame) {
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  const std::int64_t end = status.st_size + std::ssize(frame);
  if (end > static_cast<std::int64_t>(max_file_bytes) || exceeds_size_limit(end)) return false;
  return ::write(file.get(), frame.data(), frame.size()) == std::ssize(frame);
}

/// Returns the size of this node's file of records.
std::int64_t append(const ContainerDirectory& directory, ClosedWriter closed, const ClosedWriter* former = nullptr) {
  closed.container = directory.manifest().id;
  closed.recorded_unix_ns = unix_ns();
  if (former != nullptr)  // the other node's clock may be ahead
    closed.recorded_unix_ns = std::max(closed.recorded_unix_ns, former->recorded_unix_ns + 1);
  const Fd file = open_for_append(directory);
  struct stat status {};
  (void)append_frame_to(file, index_frame(closed));
  return file && ::fstat(file.get(), &status) == 0 ? status.st_size : 0;
}

/// Returns the first `bytes` of an index dropping; fewer if it is shorter or cannot be read.
std::vector<std::uint8_t> read_index_dropping(const ContainerDirectory& directory, std::int64_t id,
                                              std::int64_t bytes) {
  std::vector<std::uint8_t> index(static_cast<std::size_t>(bytes));
  const Fd fd = directory.open_dropping(Dropping::index, id, O_RDONLY);
  std::size_t done = 0;
  while (fd && done < index.size()) {
    const ssize_t got = ::pread(fd.get(), index.data() + done, index.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  index.resize(done);
  return index;
}

}  // namespace

Result<ClosedWriters> ClosedWriters::read(const ContainerDirectory& directory, const std::vector<std::string>& names) {
  ClosedWriters read;
  std::string stamps;
  for (const std::string& name : names) {
    struct stat status {};
    if (::fstatat(directory.fd().get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0)
      stamps +=
          fmt::format("{} {} {} {} {}\n", name, status.st_dev, status.st_ino, status.st_size, unix_ns(status.st_mtim));
    auto text = read_file_in(directory.fd(), name, directory.path(), max_file_bytes);
    if (!text && is_transient(text.error().system_errno)) return pass_on(std::move(text.error()));
    const int failure = text ? 0 : text.error().system_errno;
    if (!text && failure != EACCES && failure != ENOENT) read.damaged_.push_back(name);
    read.files_.push_back(std::move(text).value_or(std::string()));
  }
  read.state_ = fnv1a(stamps);
  for (std::size_t n = 0; n < names.size(); ++n) {
    ClosedWriterRecords records = read_closed_writers(bytes_of(read.files_[n]));
    bool is_sound = records.damaged_bytes == 0;
    for (const ClosedWriter& closed : records.writers) {
      const bool is_ours = closed.container == directory.manifest().id;
      is_sound &= is_ours;
      if (is_ours) read.last_.push_back(closed);
    }
    for (const SyncedWriter& synced : records.synced) {
      const bool is_ours = synced.container == directory.manifest().id;
      is_sound &= is_ours;
      if (is_ours) read.synced_.push_back(synced);
    }
    if (!is_sound) read.damaged_.push_back(names[n]);
  }
  read.keep_last_records();
  return read;
}

/// Of several records of a writer, keeps the latest. Of equally late ones, that which was read last.
void ClosedWriters::keep_last_records() {
  const auto order = [](const ClosedWriter& closed) { return std::pair(closed.id, closed.recorded_unix_ns); };
  if (!std::ranges::is_sorted(last_, {}, order)) std::ranges::stable_sort(last_, {}, order);
  const auto is_same = [](const ClosedWriter& one, const ClosedWriter& other) { return one.id == other.id; };
  // From the back, std::unique() keeps the last of its kind.
  const auto kept = std::unique(last_.rbegin(), last_.rend(), is_same);
  last_.erase(last_.begin(), kept.base());

  std::erase_if(synced_, [&](const SyncedWriter& synced) { return find(synced.id) != nullptr; });
  std::ranges::sort(synced_, {}, [](const SyncedWriter& synced) { return std::pair(synced.id, -synced.data_bytes); });
  const auto same = [](const SyncedWriter& one, const SyncedWriter& other) { return one.id == other.id; };
  synced_.erase(std::unique(synced_.begin(), synced_.end(), same), synced_.end());
}

const ClosedWriter* ClosedWriters::find(std::int64_t id) const {
  const auto found = std::ranges::lower_bound(last_, id, {}, &ClosedWriter::id);
  return found == last_.end() || found->id != id ? nullptr : &*found;
}

const SyncedWriter* ClosedWriters::find_synced(std::int64_t id) const {
  const auto found = std::ranges::lower_bound(synced_, id, {}, &SyncedWriter::id);
  return found == synced_.end() || found->id != id ? nullptr : &*found;
}

std::vector<std::int64_t> ClosedWriters::ids() const {
  std::vector<std::int64_t> ids;
  for (const ClosedWriter& closed : last_)
    if (!closed.is_given_up) ids.push_back(closed.id);
  return ids;
}

std::vector<ClosedWriter> ClosedWriters::given_up() const {
  std::vector<ClosedWriter> given_up;
  std::ranges::copy_if(last_, std::back_inserter(given_up), &ClosedWriter::is_given_up);
  return given_up;
}

std::int64_t record_closed_writer(const ContainerDirectory& directory, ClosedWriter closed,
                                  const ClosedWriter* former) {
  std::vector<std::uint8_t> index;
  if (closed.index_bytes > max_copied_bytes) {
    closed.index = {};
  } else if (closed.index.empty()) {
    index = read_index_dropping(directory, closed.id, closed.index_bytes);
    if (crc32c(index) == closed.index_checksum) closed.index = index;
  }
  return append(directory, closed, former);
}

void record_given_up_writer(const ContainerDirectory& directory, std::int64_t id, std::int64_t lost_bytes,
                            const ClosedWriter* former) {
  (void)append(directory, {.id = id, .data_bytes = lost_bytes, .is_given_up = true}, former);
}

bool SyncRecord::is_there(const ContainerDirectory& directory) {
  const std::string name = node_file_name();
  struct stat now {};
  if (frame_.empty() || ::fstatat(directory.fd().get(), name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (is_same_state(now, file_)) return true;
  // Others have appended to the file. Or it is another one, perhaps with the same inode.
  const Fd file = open_file_at(directory.fd().get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  std::vector<std::uint8_t> found(frame_.size());
  if (!file || ::fstat(file.get(), &file_) != 0 ||
      ::pread(file.get(), found.data(), found.size(), static_cast<off_t>(at_)) != std::ssize(found))
    return false;
  return found == frame_;
}

Fd SyncRecord::open_file(const ContainerDirectory& directory) { return open_for_append(directory); }

void SyncRecord::append(const ContainerDirectory& directory, const Fd& file, SyncedWriter synced) {
  synced.container = directory.manifest().id;
  frame_ = index_frame(synced);
  const bool is_appended =
      append_frame_to(file, frame_) && ::fdatasync(file.get()) == 0 && ::fstat(file.get(), &file_) == 0;
  at_ = is_appended ? ::lseek(file.get(), 0, SEEK_CUR) - std::ssize(frame_) : -1;
  if (at_ < 0) frame_.clear();
}

void remove_closed_writers(const ContainerDirectory& directory, std::int64_t first_kept) {
  std::vector<std::string> names = names_in(directory.fd()).value_or(std::vector<std::string>());
  std::erase_if(names, [](const std::string& name) { return !name.starts_with(closed_writers_prefix); });
  const auto closed = ClosedWriters::read(directory, names);
  for (const std::string& name : names) (void)::unlinkat(directory.fd().get(), name.c_str(), 0);
  if (!closed) return;
  for (const std::int64_t id : closed->ids())
    if (id >= first_kept) (void)append(directory, *closed->find(id), closed->find(id));
  for (const SyncedWriter& synced : closed->synced())
    if (synced.id >= first_kept) (void)append_frame_to(open_for_append(directory), index_frame(synced));
  // A record that came back after a power failure would be a loss if the droppings did not.
  if (closed->synced().empty()) return;
  const Fd container = open_file_at(directory.fd().get(), ".", O_RDONLY | O_DIRECTORY);
  if (container) (void)::fsync(container.get());
}

}  // namespace iosig
