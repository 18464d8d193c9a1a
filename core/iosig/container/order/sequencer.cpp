#include "iosig/container/order/sequencer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "iosig/base/kept_fds.h"
#include "iosig/base/machine.h"
#include "iosig/base/size_limit.h"
#include "iosig/base/text.h"
#include "iosig/container/layout/container_directory.h"

namespace iosig {
namespace {

constexpr std::string_view name_prefix = "order.";
constexpr std::uint64_t sequencer_magic = 0x03454c4254584f49 + (sizeof(pthread_mutex_t) << 56);
constexpr std::uint32_t max_slots = 4096;
constexpr int max_open_tries = 100;

}  // namespace

/// A writer reads and writes its slot at every write, so each slot has its own cache lines.
struct alignas(128) SharedSlot {
  std::uint32_t is_taken = 0;
  std::atomic<std::uint32_t> is_revoked{0};
  // Under the lock.
  Claim claim;                          ///< if is_revoked: the bytes that may have been written since it was made
  WrittenSummary written;               ///< covers all writes under earlier claims
  std::atomic<std::int64_t> number{0};  ///< a contended writer sets it without the lock
  // Changed by the slot's writer only, without the lock.
  std::atomic<std::int64_t> end{0};       ///< of what the writer wrote
  std::atomic<std::uint64_t> changes{0};  ///< by all writers that have had this slot
  std::atomic<std::uint64_t> owner{0};    ///< under the lock
  /// Where the append in progress ends; 0: none. Set under the lock, cleared after `end` is set.
  std::atomic<std::int64_t> reserved{0};
  // For followers (SlotState). Versions before 0.1.0 do not know them.
  std::atomic<std::int64_t> writer_plus_1{0};  ///< 0 under the lock, then set by the writer
  std::atomic<std::uint64_t> marks{0};         ///< as `changes`
};
static_assert(sizeof(SharedSlot) == 256, "versions share the file");

struct SharedSequencer {
  std::uint64_t magic_number = 0;
  pthread_mutex_t mutex;
  std::atomic<std::int64_t> sequence{0};
  /// Number of claims not revoked; too high while a writer claims. Changed under the lock.
  std::atomic<std::uint32_t> claims{0};
  // Under the lock: a writer with a number up to this one needs a new number with its next claim.
  std::int64_t floor = 0;
  std::atomic<std::int64_t> end{0};               // end of earlier writes, or of what is reserved for appends
  std::uint32_t slots_used = 0, slots_taken = 0;  // under the lock
  std::atomic<std::int64_t> next_id{0};
  std::atomic<std::uint64_t> acquisitions{0};  ///< how often a slot was acquired
  /// 1 + the end of the bytes that writers without a slot have written; 0: made by a version that did not record it.
  /// Under the lock.
  std::int64_t filled_end_plus_1 = 0;
  std::int64_t unmerged_bytes = 0;  ///< of the indices of closed writers: see SequencerSlot::leave(). Under the lock.
  alignas(4096) std::array<SharedSlot, max_slots> slots;
};

namespace {

bool holds(const SharedSlot& slot) {
  return slot.claim.end > slot.claim.begin && slot.is_revoked.load(std::memory_order_relaxed) == 0;
}

/// Holds the sequencer's lock. Recovers it if its holder was killed.
class SequencerLock {
 public:
  explicit SequencerLock(SharedSequencer& table) : mutex_(table.mutex) {
    if (::pthread_mutex_lock(&mutex_) != EOWNERDEAD) return;
    const std::span<SharedSlot> slots(table.slots.data(), table.slots_used);
    table.claims = static_cast<std::uint32_t>(std::ranges::count_if(slots, holds));
    ::pthread_mutex_consistent(&mutex_);
  }
  SequencerLock(const SequencerLock&) = delete;
  SequencerLock& operator=(const SequencerLock&) = delete;
  ~SequencerLock() { ::pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t& mutex_;
};

// With the lock held. The count of claims is never too small, even if a writer is killed between two statements.

void drop_claim(SharedSequencer& table, SharedSlot& slot) {
  const bool held = holds(slot);
  slot.claim = {};
  slot.is_revoked = 0;
  if (held) --table.claims;
}

void revoke(SharedSequencer& table, SharedSlot& slot) {
  if (!holds(slot)) return;
  slot.is_revoked.store(1, std::memory_order_release);
  --table.claims;
}

/// Records the end of a leaving writer's writes.
void keep_end(SharedSequencer& table, const SharedSlot& slot) {
  const std::int64_t end = slot.end;
  table.end = std::max(table.end.load(), end);
  if (table.filled_end_plus_1 > 0) table.filled_end_plus_1 = std::max(table.filled_end_plus_1, end + 1);
}

/// Releases the space of an append that reserved the bytes up to `reserved` and did not fill all of them. If no later
/// append follows, the next one goes behind the written bytes and the other reservations.
void give_back_room(SharedSequencer& table, std::int64_t reserved) {
  if (table.filled_end_plus_1 == 0 || table.end != reserved) return;
  std::int64_t end = table.filled_end_plus_1 - 1;
  for (const SharedSlot& slot : std::span(table.slots.data(), table.slots_used)) {
    // Read before `end`: one of the two has the bytes.
    end = std::max(end, slot.reserved.load(std::memory_order_acquire));
    end = std::max(end, slot.end.load());
  }
  table.end = end;
}

/// The lock (open file description lock) lasts as long as the open file, which its mappings keep open after the last
/// descriptor is closed, including inherited ones.
bool lock_bytes(int fd, off_t first, off_t count, int type) {
  struct flock lock {};
  lock.l_type = static_cast<short>(type);
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

/// Reads `changes` first: `marks` and the writer's tail then have all that it counts.
SlotState state_of(const SharedSlot& slot) {
  SlotState state;
  state.changes = slot.changes.load(std::memory_order_acquire);
  state.writer = slot.writer_plus_1.load(std::memory_order_acquire) - 1;
  state.marks = slot.marks.load(std::memory_order_acquire);
  return state;
}

/// Adds the writers that have taken a slot since `states` were read. false: one of them took the slot of another
/// writer, whose last changes are not known, or is not known yet.
bool add_new_writers(std::span<const SharedSlot> slots, std::uint64_t acquisitions, SlotStates& states) {
  std::uint64_t left = acquisitions - states.acquisitions;
  for (std::size_t n = 0; n < slots.size(); ++n) {
    if (n == states.slots.size()) states.slots.emplace_back();
    SlotState& known = states.slots[n];
    const std::int64_t writer = slots[n].writer_plus_1.load(std::memory_order_acquire) - 1;
    if (writer == known.writer) continue;
    if (known.writer >= 0 || known.changes != 0) return false;
    known.writer = writer;
    --left;
  }
  states.acquisitions = acquisitions;
  return left == 0;
}

/// Watchers lock byte 0, the writer of slot n locks byte 1 + n.
bool lock_slot(int fd, std::uint32_t slot, int type) { return lock_bytes(fd, 1 + static_cast<off_t>(slot), 1, type); }

/// Whether a writer has the slot, in this process or another.
bool is_slot_taken(int fd, std::uint32_t slot) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 1 + static_cast<off_t>(slot);
  lock.l_len = 1;
  return ::fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

/// Removes sequencers without writers and watchers: those of earlier boots of this node, and of other nodes.
void remove_deserted_tables(const Fd& directory, const std::string& ours) {
  const auto names = names_in(directory);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!is_sequencer(name) || name == ours) continue;
    const Fd table = open_file_at(directory.get(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
    if (table && lock_bytes(table.get(), 0, max_slots + 1, F_WRLCK)) ::unlinkat(directory.get(), name.c_str(), 0);
  }
}

/// Allocates the file's blocks before they are mapped: a store to a hole on a full device raises SIGBUS.
int reserve(int fd, std::size_t bytes) {
  const auto end = static_cast<off_t>(bytes);
  return exceeds_size_limit(end) ? EFBIG : ::posix_fallocate(fd, 0, end);
}

/// Whether the file holds at least the head. Only slots in use have blocks, so it may end before the last slot.
bool is_long_enough(const struct stat& status) {
  return S_ISREG(status.st_mode) && status.st_size >= static_cast<off_t>(offsetof(SharedSequencer, slots));
}

std::int64_t now_us() { return unix_ns() / 1000; }

}  // namespace

std::string sequencer_name() { return std::string(name_prefix) + node_since_boot(); }

bool is_sequencer(std::string_view name) { return name.starts_with(name_prefix); }

/// Creates the sequencer `name` in `directory` atomically. Keeps an existing one.
Result<void> SequencerSlot::make_table(const Fd& directory, const std::string& name, const std::string& path,
                                       const SequencerStart& start) {
  // Threads of one process, and processes of other nodes with the same PID, may choose the same name.
  std::string draft;
  Fd fd;
  for (int tries = 0; !fd && (tries == 0 || (errno == EEXIST && tries < max_open_tries)); ++tries) {
    draft = fmt::format("{}{}.{}", order_draft_prefix, ::getpid(), unix_ns());
    fd = open_file_at(directory.get(), draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  }
  if (!fd) return write_failure("make", path, errno);
  const auto give_up = [&](tl::unexpected<Error> failure) -> Result<void> {
    ::unlinkat(directory.get(), draft.c_str(), 0);
    return failure;
  };
  // Users who may read or write the file get the same access to its sequencer, whatever the umask.
  struct stat manifest {};
  if (::fstatat(directory.get(), std::string(container_manifest_name).c_str(), &manifest, AT_SYMLINK_NOFOLLOW) == 0) {
    if (manifest.st_uid != ::geteuid() || manifest.st_gid != ::getegid())
      if (::fchown(fd.get(), manifest.st_uid, manifest.st_gid) != 0)
        (void)!::fchown(fd.get(), static_cast<uid_t>(-1), manifest.st_gid);
    (void)::fchmod(fd.get(), piece_mode_for(manifest.st_mode));
  }
  write_in_place(fd.get());
  // Earlier versions require the file to have the size of all slots; the rest is a hole.
  if (!exceeds_size_limit(sizeof(Table)) && ::ftruncate(fd.get(), sizeof(Table)) != 0)
    return give_up(write_failure("make", path, errno));
  if (const int failure = reserve(fd.get(), offsetof(Table, slots)); failure != 0)
    return give_up(write_failure("reserve room for", path, failure));
  void* const mapped = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return give_up(system_failure("map", path));
  auto* const table = static_cast<Table*>(mapped);
  pthread_mutexattr_t attributes;
  ::pthread_mutexattr_init(&attributes);
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  ::pthread_mutex_init(&table->mutex, &attributes);
  ::pthread_mutexattr_destroy(&attributes);
  table->magic_number = sequencer_magic;
  table->sequence = start.sequence;
  table->next_id = start.next_id;
  table->end = start.size;
  table->filled_end_plus_1 = start.size + 1;
  ::munmap(mapped, sizeof(Table));
  // linkat is exclusive without the flags of renameat2, which some file systems lack.
  if (::linkat(directory.get(), draft.c_str(), directory.get(), name.c_str(), 0) != 0 && errno != EEXIST)
    return give_up(write_failure("make", path, errno));
  ::unlinkat(directory.get(), draft.c_str(), 0);
  return {};
}

Result<void> SequencerSlot::map_table(const Fd& file, const std::string& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_failure("inspect", path);
  const bool is_table = is_long_enough(status);
  void* const mapped =
      is_table ? ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0) : nullptr;
  if (mapped == MAP_FAILED) return system_failure("map", path);
  table_ = static_cast<Table*>(mapped);
  if (!is_table || table_->magic_number != sequencer_magic || table_->slots_used > max_slots)
    return fail(ErrorKind::bad_input,
                "'{}' is not a sequencer, or one of another version; remove it while no program writes",
                printable(path));
  return {};
}

/// Acquires the first free slot, and releases the slots of dead writers.
Result<void> SequencerSlot::acquire(const Fd& file, const std::string& path, std::uint64_t owner) {
  const SequencerLock lock(*table_);
  for (std::uint32_t n = 0; n < max_slots; ++n) {
    SharedSlot& slot = table_->slots[n];
    const bool is_used = n < table_->slots_used;
    if (slot_ != nullptr && !is_used) return {};
    if ((slot_ != nullptr && slot.is_taken == 0) || !lock_slot(file.get(), n, F_WRLCK)) continue;
    if (!is_used) {
      const std::size_t bytes = offsetof(Table, slots) + (n + 1) * sizeof(SharedSlot);
      if (const int failure = reserve(file.get(), bytes); failure != 0)
        return write_failure("reserve room for", path, failure);
      table_->slots_used = n + 1;
    }
    keep_end(*table_, slot);
    table_->slots_taken -= slot.is_taken;
    table_->floor = std::max(table_->floor, slot.number.load());
    drop_claim(*table_, slot);
    slot.written = {};
    slot.number = 0;
    slot.end = 0;
    if (const std::int64_t reserved = slot.reserved.exchange(0); reserved != 0) give_back_room(*table_, reserved);
    slot.is_taken = slot_ == nullptr ? 1 : 0;
    table_->slots_taken += slot.is_taken;
    if (slot_ == nullptr) {
      slot.owner = owner;
      slot.writer_plus_1 = 0;
      ++table_->acquisitions;
      slot_ = &slot;
    } else {
      lock_slot(file.get(), n, F_UNLCK);
    }
  }
  if (slot_ != nullptr) return {};
  return fail(ErrorKind::system, "'{}': {} writers are active on this node, which is the limit", printable(path),
              max_slots);
}

Result<SequencerSlot> SequencerSlot::take(const Fd& directory, const std::string& shown,
                                          const std::function<Result<SequencerStart>()>& start, std::uint64_t owner) {
  const std::string name = sequencer_name(), path = shown + "/" + name;
  for (;;) {
    SequencerSlot slot;
    slot.directory_ = &directory;
    const Fd file = open_file_at(directory.get(), name.c_str(), O_RDWR | O_NOFOLLOW);
    if (!file && errno != ENOENT) return system_failure("open", path);
    if (!file) {
      const auto known = start();
      if (!known) return pass_on(known.error());
      if (auto made = make_table(directory, name, path, *known); !made) return pass_on(std::move(made.error()));
      remove_deserted_tables(directory, name);
      continue;
    }
    if (auto mapped = slot.map_table(file, path); !mapped) return pass_on(std::move(mapped.error()));
    if (auto acquired = slot.acquire(file, path, owner); !acquired) return pass_on(std::move(acquired.error()));
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return system_failure("inspect", path);
    if (status.st_nlink > 0) return slot;  // otherwise another node has just removed the file as deserted
  }
}

SequencerSlot::~SequencerSlot() {
  if (table_ == nullptr) return;
  if (slot_ != nullptr) {
    const SequencerLock lock(*table_);
    give_slot_back();
  }
  ::munmap(table_, sizeof(Table));
}

/// The caller holds the lock.
void SequencerSlot::give_slot_back() {
  table_->floor = std::max(table_->floor, slot_->number.load());
  drop_claim(*table_, *slot_);
  slot_->written = {};
  slot_->number = 0;
  slot_->is_taken = 0;
  --table_->slots_taken;
  keep_end(*table_, *slot_);
  slot_ = nullptr;
}

bool SequencerSlot::leave(std::int64_t index_bytes, std::int64_t worth) {
  const SequencerLock lock(*table_);
  give_slot_back();
  table_->unmerged_bytes += index_bytes;
  if (table_->slots_taken > 0 || table_->unmerged_bytes < worth) return false;
  table_->unmerged_bytes = 0;
  return true;
}

void SequencerSlot::swap(SequencerSlot& other) noexcept {
  std::swap(directory_, other.directory_);
  std::swap(table_, other.table_);
  std::swap(slot_, other.slot_);
  std::swap(claim_, other.claim_);
  std::swap(guess_, other.guess_);
  std::swap(number_, other.number_);
  std::swap(previous_, other.previous_);
  std::swap(low_, other.low_);
  std::swap(high_, other.high_);
  std::swap(is_contended_, other.is_contended_);
}

bool SequencerSlot::is_revoked() const { return slot_->is_revoked.load(std::memory_order_acquire) != 0; }

std::int64_t SequencerSlot::new_number() {
  const std::int64_t now = now_us();
  std::int64_t last = table_->sequence.load(std::memory_order_relaxed), next = 0;
  do next = std::max(last + 1, now);
  while (!table_->sequence.compare_exchange_weak(last, next));
  return next;
}

/// Drops the claim and adds the writes under it to the summary.
void SequencerSlot::leave_claim() {
  slot_->written.add(part_of(claim_, low_, high_));
  drop_claim(*table_, *slot_);
  claim_ = {};
  low_ = high_ = 0;
}

std::span<SharedSlot> SequencerSlot::slots() const { return {table_->slots.data(), table_->slots_used}; }

/// The steps are those of docs/sequencer.md, "The slow path", and its proof relies on their order.
///
/// Example: A appends blocks of 4 KiB and is alone, so it claims everything, with number 100, and its later writes take
/// the fast path. B writes at 1 MiB: it claims [1 MiB, 1 MiB + 4 KiB), revokes A's claim, and takes number 101, because
/// A may have written there. A's next write sees the revoked claim and comes here. It claims bytes from its offset on
/// that end before B's claim, and keeps 100: B's number is greater, but B has nothing there.
std::int64_t SequencerSlot::renew(std::uint64_t offset, std::uint64_t length) {
  // Step 1: guess which bytes the next writes will touch.
  const Claim wanted = guess_.next(previous_, high_ - low_, offset, length);
  previous_ = offset;
  // Step 2: a contended writer increments the counter without reading the clock, unless a claim may cover the bytes.
  if (is_contended_ && guess_.is_lost()) {
    number_ = number_ == 0 ? new_number() : table_->sequence.fetch_add(1) + 1;
    slot_->number = number_;
    if (table_->claims == 0) return number_;
  }
  // Step 3: acquire the lock. Step 4: leave the old claim. Step 5: announce a claim before other numbers are read.
  const SequencerLock lock(*table_);
  leave_claim();
  ++table_->claims;
  // Step 6: choose the claim.
  claim_ = table_->slots_taken == 1 ? everything : largest_free(wanted, length);
  is_contended_ = guess_.is_lost() && table_->slots_taken > 1;
  // Steps 7 to 9: revoke the claims of others, and take a new number unless the present one is the greatest here.
  const bool keeps_number = !is_contended_ && has_greatest_number();
  for (SharedSlot& slot : slots())
    if (holds_overlapping(slot, claim_)) revoke(*table_, slot);
  if (!keeps_number) slot_->number = number_ = new_number();
  // Step 10: publish the claim, or that this writer may write anywhere.
  if (is_contended_) {
    slot_->written.add(everything);
    claim_ = {};
    --table_->claims;
    return number_;
  }
  slot_->claim = claim_;
  low_ = offset;
  high_ = offset + length;
  return number_;
}

/// Whether `slot` is another writer's and holds a claim that may overlap `claim`. The caller holds the lock.
bool SequencerSlot::holds_overlapping(const SharedSlot& slot, const Claim& claim) const {
  return &slot != slot_ && holds(slot) && may_overlap(slot.claim, claim);
}

/// Returns the largest part of `wanted` that overlaps no claim of others, at least the `length` bytes of the write at
/// hand. The caller holds the lock.
Claim SequencerSlot::largest_free(Claim wanted, std::uint64_t length) {
  const auto overlaps_others = [&] {
    return std::ranges::any_of(slots(), [&](const SharedSlot& slot) { return holds_overlapping(slot, wanted); });
  };
  while (wanted.end - wanted.begin > length && overlaps_others()) wanted = guess_.smaller();
  return wanted;
}

/// Whether `number_` is greater than the number of every write of others that may overlap claim_. The caller holds the
/// lock.
bool SequencerSlot::has_greatest_number() const {
  return number_ > table_->floor && std::ranges::none_of(slots(), [&](const SharedSlot& slot) {
           return &slot != slot_ && slot.number >= number_ &&
                  (may_overlap(slot.claim, claim_) || slot.written.may_overlap(claim_));
         });
}

void SequencerSlot::renew_at_next() {
  const SequencerLock lock(*table_);
  leave_claim();
  number_ = 0;
}

std::int64_t SequencerSlot::number_once(std::uint64_t begin, std::uint64_t end) {
  const SequencerLock lock(*table_);
  leave_claim();
  const Claim claim{begin, end, 0, 0};
  for (SharedSlot& slot : slots())
    if (&slot != slot_ && may_overlap(slot.claim, claim)) revoke(*table_, slot);
  number_ = 0;  // the next write of this writer also gets a greater number
  return table_->floor = new_number();
}

void SequencerSlot::let_go() {
  if (table_ != nullptr) ::munmap(table_, sizeof(Table));
  table_ = nullptr;
  slot_ = nullptr;
}

std::int64_t SequencerSlot::next_id() { return table_->next_id.fetch_add(1); }

void SequencerSlot::extend(std::int64_t end) {
  if (end > slot_->end.load(std::memory_order_relaxed)) slot_->end.store(end, std::memory_order_relaxed);
}

std::int64_t SequencerSlot::size() const {
  std::int64_t size = table_->end.load();
  for (const SharedSlot& slot : slots()) size = std::max(size, slot.end.load());
  return size;
}

std::int64_t SequencerSlot::append(std::int64_t length) {
  const SequencerLock lock(*table_);
  give_back_room_of_dead();
  const std::int64_t offset = size();
  const std::int64_t end = length > INT64_MAX - offset ? INT64_MAX : offset + length;  // the write itself then fails
  slot_->reserved = end;
  table_->end = end;
  return offset;
}

void SequencerSlot::end_append(std::int64_t offset, std::int64_t length, std::int64_t done) {
  if (done == length) {
    slot_->reserved.store(0, std::memory_order_release);
    return;
  }
  const SequencerLock lock(*table_);
  slot_->reserved = 0;
  give_back_room(*table_, length > INT64_MAX - offset ? INT64_MAX : offset + length);
}

/// Releases space at the end that was reserved by writers that died before they filled it. The caller holds the lock.
void SequencerSlot::give_back_room_of_dead() {
  const std::span<SharedSlot> slots = this->slots();
  for (;;) {
    const auto last = std::ranges::find_if(
        slots, [&](const SharedSlot& slot) { return slot.reserved != 0 && slot.reserved == table_->end; });
    if (last == slots.end() || is_taken(static_cast<std::uint32_t>(last - slots.begin()))) return;
    give_back_room(*table_, last->reserved.exchange(0));
  }
}

/// Whether a writer has the slot. Also true if that cannot be found out.
bool SequencerSlot::is_taken(std::uint32_t slot) const {
  const Fd file = open_file_at(directory_->get(), sequencer_name().c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  return !file || is_slot_taken(file.get(), slot);
}

void SequencerSlot::changed() {
  slot_->changes.store(slot_->changes.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void SequencerSlot::marked() {
  slot_->marks.store(slot_->marks.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  changed();
}

void SequencerSlot::set_writer(std::int64_t id) { slot_->writer_plus_1.store(id + 1, std::memory_order_release); }

void SequencerSlot::set_size(std::int64_t size) {
  const SequencerLock lock(*table_);
  table_->end = size;
  if (table_->filled_end_plus_1 > 0) table_->filled_end_plus_1 = size + 1;
  for (SharedSlot& slot : slots()) slot.end = 0;
}

Result<bool> OtherNodes::are_there(const Fd& directory, const std::string& shown) {
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0) return system_failure("inspect", shown);
  const std::int64_t changed_ns = unix_ns(status.st_mtim);
  if (changed_ns == directory_changed_ns_) return are_there_;
  const auto names = names_in(directory);
  if (!names) return pass_on(names.error());
  const std::string ours = sequencer_name();
  are_there_ = std::ranges::any_of(*names, [&](const std::string& name) { return is_sequencer(name) && name != ours; });
  directory_changed_ns_ = changed_ns;
  return are_there_;
}

SequencerWatch::~SequencerWatch() {
  if (table_ != nullptr) ::munmap(const_cast<SharedSequencer*>(table_), sizeof(SharedSequencer));
}

bool SequencerWatch::look(const Fd& directory) {
  const Fd file = open_file_at(directory.get(), sequencer_name().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || status.st_nlink == 0 || !is_long_enough(status)) return false;
  void* const mapped = ::mmap(nullptr, sizeof(SharedSequencer), PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapped == MAP_FAILED) return false;
  const auto* const table = static_cast<const SharedSequencer*>(mapped);
  (void)lock_bytes(file.get(), 0, 1, F_RDLCK);  // otherwise another node that finds no writer here may remove it
  if (table->magic_number != sequencer_magic || table->slots_used > max_slots) {
    ::munmap(mapped, sizeof(SharedSequencer));
    return false;
  }
  table_ = table;
  return true;
}

std::uint64_t SequencerWatch::changes(std::uint64_t owner) const {
  // Each acquisition adds more than all changes that a slot can count, so the sum never repeats.
  constexpr int weight = 44;
  std::uint64_t sum = table_->acquisitions.load(std::memory_order_acquire) << weight;
  for (const SharedSlot& slot : slots())
    if (owner == 0 || slot.owner.load(std::memory_order_relaxed) != owner)
      sum += slot.changes.load(std::memory_order_acquire);
  return sum;
}

std::span<const SharedSlot> SequencerWatch::slots() const {
  const auto used = std::atomic_ref(const_cast<std::uint32_t&>(table_->slots_used)).load();
  return {table_->slots.data(), std::min(used, max_slots)};
}

void SequencerWatch::read(SlotStates& states) const {
  states.acquisitions = table_->acquisitions.load(std::memory_order_acquire);
  states.slots.clear();
  for (const SharedSlot& slot : slots()) states.slots.push_back(state_of(slot));
  if (table_->acquisitions.load(std::memory_order_acquire) != states.acquisitions) states.slots.clear();
}

bool SequencerWatch::update(SlotStates& states, std::vector<std::size_t>& changed) const {
  changed.clear();
  const std::uint64_t acquisitions = table_->acquisitions.load(std::memory_order_acquire);
  const std::span<const SharedSlot> now = slots();
  if (acquisitions != states.acquisitions && !add_new_writers(now, acquisitions, states)) return false;
  for (std::size_t n = 0; n < std::min(now.size(), states.slots.size()); ++n) {
    SlotState& known = states.slots[n];
    if (now[n].changes.load(std::memory_order_acquire) == known.changes) continue;
    const SlotState state = state_of(now[n]);
    if (state.writer != known.writer || state.marks != known.marks) return false;
    known = state;
    changed.push_back(n);
  }
  return table_->acquisitions.load(std::memory_order_acquire) == acquisitions;
}

}  // namespace iosig
