#include "iosig/container/layout/tail.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "iosig/base/crc32c.h"
#include "iosig/base/size_limit.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr std::string_view tail_magic("IOXTAIL\1", 8);
constexpr std::size_t head_bytes = sizeof(TailRecord);  // magic with version, identity, SyncedHead, then zeros
constexpr std::size_t synced_at = 16;
constexpr std::size_t least_page = 4096;  ///< a page is flushed as a whole, and pages in any order
constexpr std::size_t first_bytes = 16 << 10, max_tail_bytes = 1 << 20;

/// SyncedBytes in the file. `check` is 0 while it changes.
struct SyncedHead {
  SyncedBytes bytes;
  std::uint64_t check = 0;

  [[nodiscard]] std::uint64_t expected_check() const {
    const TailRecord fields{.logical = bytes.data,
                            .length = bytes.index,
                            .stride = bytes.data_checksum,
                            .physical = bytes.index_checksum,
                            .sequence = 1};
    return fields.expected_check();
  }
  [[nodiscard]] bool is_valid() const { return check == expected_check() && bytes.data >= 0 && bytes.index >= 0; }
};
static_assert(sizeof(SyncedHead) == 32 && synced_at + sizeof(SyncedHead) <= head_bytes);

SyncedHead synced_head(std::span<const std::uint8_t> tail) {
  SyncedHead head;
  if (tail.size() >= head_bytes) std::memcpy(&head, tail.data() + synced_at, sizeof head);
  return head;
}

std::int64_t physical_end(const TailRecord& record) {
  return record.physical + static_cast<std::int64_t>(record.count) * record.length;
}

/// Returns the record at `at` if it is valid.
std::optional<TailRecord> record_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  TailRecord record;
  std::memcpy(&record, bytes.data() + at, sizeof record);
  return record.is_valid() ? std::optional(record) : std::nullopt;
}

std::uint64_t check_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  std::uint64_t check = 0;
  std::memcpy(&check, bytes.data() + at + offsetof(TailRecord, check), sizeof check);
  return check;
}

}  // namespace

bool TailRecord::is_valid() const {
  if (count == 0 || count > INT64_MAX) return false;
  const auto writes = static_cast<__int128>(count);
  const auto last_logical = logical + (writes - 1) * stride;
  const auto end = physical + writes * length;
  return check == expected_check() && length > 0 && logical >= 0 && physical >= 0 && sequence >= 0 &&
         last_logical >= 0 && logical <= INT64_MAX - length && last_logical <= INT64_MAX - length && end <= INT64_MAX;
}

std::vector<TailRecord> read_tail(std::span<const std::uint8_t> bytes) {
  std::vector<TailRecord> records;
  if (bytes.size() < head_bytes || std::memcmp(bytes.data(), tail_magic.data(), tail_magic.size()) != 0) return records;
  for (std::size_t at = head_bytes; at + sizeof(TailRecord) <= bytes.size(); at += sizeof(TailRecord)) {
    const auto record = record_at(bytes, at);
    if (!record || (!records.empty() && record->physical != physical_end(records.back()))) break;
    records.push_back(*record);
  }
  return records;
}

std::optional<SyncedBytes> synced_bytes(std::span<const std::uint8_t> tail) {
  const SyncedHead head = synced_head(tail);
  return head.is_valid() ? std::optional(head.bytes) : std::nullopt;
}

bool has_changed_synced_bytes(std::span<const std::uint8_t> tail) {
  const SyncedHead head = synced_head(tail);
  return head.check != 0 && !head.is_valid();
}

std::uint64_t tail_identity(std::string_view container, std::int64_t writer) {
  const std::uint32_t of_container =
      crc32c({reinterpret_cast<const std::uint8_t*>(container.data()), container.size()});
  return std::uint64_t{of_container} << 32 ^ static_cast<std::uint64_t>(writer + 1);
}

bool is_tail_of(const Fd& file, std::uint64_t identity) {
  std::array<char, tail_magic.size() + sizeof identity> head{};
  if (::pread(file.get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) return false;
  std::uint64_t found = 0;
  std::memcpy(&found, head.data() + tail_magic.size(), sizeof found);
  return std::memcmp(head.data(), tail_magic.data(), tail_magic.size()) == 0 && found == identity;
}

bool has_lost_records(std::span<const std::uint8_t> bytes, std::int64_t known, std::int64_t data_bytes) {
  if (bytes.size() < first_bytes) return data_bytes > known;
  const std::vector<TailRecord> records = read_tail(bytes);
  const std::int64_t newest = records.empty() ? known - 1 : records.back().physical;
  const std::size_t end = head_bytes + records.size() * sizeof(TailRecord);
  for (std::size_t at = head_bytes; at + sizeof(TailRecord) <= bytes.size(); at += sizeof(TailRecord)) {
    const auto record = record_at(bytes, at);
    if (record ? !record->has_sure_count() || (at >= end && record->physical > newest) : check_at(bytes, at) != 0)
      return true;
  }
  return false;
}

bool is_foreign_tail(std::span<const std::uint8_t> bytes, std::uint64_t identity, std::int64_t known,
                     std::int64_t data_bytes) {
  if (bytes.size() < head_bytes) return false;
  std::uint64_t found = 0;
  std::memcpy(&found, bytes.data() + tail_magic.size(), sizeof found);
  const bool is_ours = found == identity && std::memcmp(bytes.data(), tail_magic.data(), tail_magic.size()) == 0;
  return !is_ours && (found != 0 || data_bytes > known);
}

Result<Tail> Tail::make(const Fd& file, std::string shown, std::uint64_t identity) {
  Tail tail;
  tail.shown_ = std::move(shown);
  write_in_place(file.get());
  // The writer holds this lock as long as it lives; repair tests it with is_alive(). If repair ran first, it takes this
  // tail for that of a dead writer and removes it, or has removed it already.
  const bool is_taken = ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat status {};
  if (is_taken || ::fstat(file.get(), &status) != 0 || status.st_nlink == 0)
    return fail_with_errno(EAGAIN, ErrorKind::infeasible, "'{}' is being repaired", printable(tail.shown_));
  // A store into a mapped page without allocated blocks would raise SIGBUS.
  const int failure = exceeds_size_limit(first_bytes) ? EFBIG : ::posix_fallocate(file.get(), 0, first_bytes);
  if (failure != 0) return write_failure("reserve room for", tail.shown_, failure);
  void* const mapped = ::mmap(nullptr, first_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return system_failure("map", tail.shown_);
  tail.device_ = status.st_dev;
  tail.inode_ = status.st_ino;
  tail.mapped_ = static_cast<std::byte*>(mapped);
  tail.bytes_ = first_bytes;
  std::memcpy(tail.mapped_, tail_magic.data(), tail_magic.size());
  std::memcpy(tail.mapped_ + tail_magic.size(), &identity, sizeof identity);
  return tail;
}

bool is_alive(const Fd& tail) { return ::flock(tail.get(), LOCK_SH | LOCK_NB) != 0; }

Tail::~Tail() {
  if (mapped_ != nullptr) ::munmap(mapped_, bytes_);
}

void Tail::swap(Tail& other) noexcept {
  std::swap(shown_, other.shown_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  std::swap(mapped_, other.mapped_);
  std::swap(bytes_, other.bytes_);
  std::swap(used_, other.used_);
  std::swap(last_, other.last_);
  std::swap(next_logical_, other.next_logical_);
  std::swap(count_, other.count_);
  std::swap(synced_, other.synced_);
}

bool Tail::begin_record(std::int64_t logical, std::int64_t length, std::int64_t physical, std::int64_t sequence) {
  const std::size_t at = head_bytes + used_ * sizeof(TailRecord);
  if (at + sizeof(TailRecord) > bytes_) return false;
  // First guess of the stride: the distance from the previous write.
  const std::int64_t stride = last_ == nullptr
                                  ? length
                                  : static_cast<std::int64_t>(static_cast<std::uint64_t>(logical) - next_logical_ +
                                                              static_cast<std::uint64_t>(last_->stride));
  auto* const record = reinterpret_cast<TailRecord*>(mapped_ + at);
  std::atomic_ref(record->check).store(0, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // keeps the order of the stores if the process is killed
  record->logical = logical;
  record->length = length;
  record->stride = stride;
  record->physical = physical;
  record->sequence = sequence;
  record->count = record->count_again = 1;
  // The checksum is 0 only by chance, 1 in 2^64. A record whose writer died before this store does not count.
  std::atomic_ref(record->check).store(record->expected_check(), std::memory_order_release);
  last_ = record;
  count_ = 1;
  next_logical_ = static_cast<std::uint64_t>(logical) + static_cast<std::uint64_t>(stride);
  ++used_;
  return true;
}

bool Tail::make_room(const Fd& file) {
  struct stat status {};
  if (bytes_ >= max_tail_bytes || !file || ::fstat(file.get(), &status) != 0) return false;
  if (status.st_dev != device_ || status.st_ino != inode_) return false;
  const std::size_t bytes = bytes_ * 2;
  if (exceeds_size_limit(static_cast<off_t>(bytes))) return false;
  if (::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) != 0) return false;
  // Not a new mapping of `file`, which may be another open file description: the lock belongs to that of the first one.
  // ThreadSanitizer does not see mremap; it reports races of two tails that had the same address one after the other.
  void* const mapped = ::mremap(mapped_, bytes_, bytes, MREMAP_MAYMOVE);
  if (mapped == MAP_FAILED) return false;
  const auto distance = reinterpret_cast<std::byte*>(last_) - mapped_;
  mapped_ = static_cast<std::byte*>(mapped);
  if (last_ != nullptr) last_ = reinterpret_cast<TailRecord*>(mapped_ + distance);
  bytes_ = bytes;
  return true;
}

Result<void> Tail::sync(const SyncedBytes& synced) {
  const std::size_t used = used_ == 0 ? 0 : head_bytes + used_ * sizeof(TailRecord);
  if (used == 0 && synced == synced_) return {};
  // After a power failure the head must not promise records that have not been flushed.
  if (used > least_page && ::msync(mapped_, used, MS_SYNC) != 0) return system_failure("sync", shown_);
  auto* const head = reinterpret_cast<SyncedHead*>(mapped_ + synced_at);
  std::atomic_ref(head->check).store(0, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  head->bytes = synced;
  std::atomic_ref(head->check).store(head->expected_check(), std::memory_order_release);
  if (::msync(mapped_, std::min(std::max(used, head_bytes), least_page), MS_SYNC) != 0)
    return system_failure("sync", shown_);
  synced_ = synced;
  return {};
}

}  // namespace iosig
