#include "preload/trace/uring.h"

#include <linux/io_uring.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdint>

#include "host/run_isolated.h"
#include "preload/hooks/real.h"
#include "preload/hooks/user_memory.h"
#include "preload/trace/names.h"
#include "preload/trace/thread_part.h"

namespace iosig::preload::trace {
namespace {

// As liburing.so.2 has them in every version: what a program is compiled with does not change.
struct SubmissionQueue {
  unsigned *head, *tail, *mask, *entries, *flags, *dropped, *array;
  io_uring_sqe* requests;
  unsigned first_prepared, end_prepared;
  std::size_t ring_bytes;
  void* ring;
  unsigned others[4];
};
struct CompletionQueue {
  unsigned *head, *tail, *mask, *entries, *flags, *overflow;
  io_uring_cqe* completions;
  std::size_t ring_bytes;
  void* ring;
  unsigned others[4];
};
struct UserRing {
  SubmissionQueue submission;
  CompletionQueue completion;
  unsigned flags;
  int fd;
};

// Newer kernels' flags.
constexpr unsigned wide_requests = 1u << 10;       ///< IORING_SETUP_SQE128
constexpr unsigned wide_completions = 1u << 11;    ///< IORING_SETUP_CQE32
constexpr unsigned char no_completion = 1u << 6;   ///< IOSQE_CQE_SKIP_SUCCESS
constexpr std::uint64_t file_offset = UINT64_MAX;  ///< of a request: that of the open file

/// An operation that has not completed.
struct Operation {
  std::uint64_t user_data, start;
  std::int64_t offset, length;
  std::uint32_t file;
  std::int32_t fd;
  std::uint32_t next;  ///< with the same user data or hash, later; or unused; 0: none
  Call call;           ///< none: unused
  bool is_at_file_offset, is_selected;
};

struct RegisteredFile {
  std::uint32_t file;
  bool is_known, is_left_out;
};

/// The state of a ring. In memory that is empty in a child.
struct Ring {
  std::atomic<const io_uring*> key;  ///< null: unused
  std::atomic<bool> is_taken;
  CompletionQueue completion;  ///< for the end, when the program's io_uring may be gone
  unsigned completion_shift;
  unsigned seen;  ///< completions before this one

  std::uint32_t capacity;  ///< operations, and lists of them
  Operation* operations;   ///< from 1 on
  std::uint32_t unused;    ///< the first one of a list
  std::uint32_t never_used;
  std::uint32_t *first, *last;  ///< of each list, by the user data's hash
  RegisteredFile* files;
  std::uint32_t file_count;
};

constexpr std::size_t max_rings = 256;
/// In flight in a ring: the kernel takes more than its queues hold. Memory that is not used is not there.
constexpr std::uint32_t min_operations = 1u << 14, max_operations = 1u << 16;
constexpr unsigned max_registered = 1u << 16;

/// Null until a ring is met.
std::atomic<Ring*> all_rings{nullptr};

/// Whether the loaded liburing is one whose rings look as above.
bool is_known_library() {
  static std::atomic<int> answer{0};
  if (answer.load(std::memory_order_relaxed) == 0)
    answer = find_in_late_library("liburing.so.2", "io_uring_submit") != nullptr ? 1 : -1;
  return answer.load(std::memory_order_relaxed) > 0;
}

Ring* rings() {
  Ring* known = all_rings.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto* const made = static_cast<Ring*>(map_emptied_at_fork(max_rings * sizeof(Ring)));
  if (made == nullptr || all_rings.compare_exchange_strong(known, made)) return made;
  ::munmap(made, max_rings * sizeof(Ring));
  return known;
}

/// Exclusive use of a ring. A ring that a signal handler finds in use, or for too long, is left alone.
class InUseRing {
 public:
  explicit InUseRing(Ring* ring) {
    constexpr int attempts = 1'000;
    for (int n = 0; ring != nullptr && n < attempts && ring_ == nullptr; ++n)
      if (!ring->is_taken.exchange(true, std::memory_order_acquire))
        ring_ = ring;
      else if (n >= 100)
        ::sched_yield();  // the thread that has it waits for a processor
  }
  InUseRing(const InUseRing&) = delete;
  InUseRing& operator=(const InUseRing&) = delete;
  ~InUseRing() {
    if (ring_ != nullptr) ring_->is_taken.store(false, std::memory_order_release);
  }
  [[nodiscard]] Ring* get() const { return ring_; }

 private:
  Ring* ring_ = nullptr;
};

void count_lost(std::uint64_t calls) {
  if (this_part->header != nullptr) this_part->header->lost_calls += calls;
}

void drop_memory(Ring& ring) {
  if (ring.operations != nullptr) ::munmap(ring.operations, ring.capacity * (sizeof(Operation) + 8));
  if (ring.files != nullptr) ::munmap(ring.files, ring.file_count * sizeof(RegisteredFile));
  ring.operations = nullptr;
  ring.files = nullptr;
  ring.capacity = ring.file_count = 0;
}

/// Begins a ring, or one that the program has made in the place of an earlier one.
bool begin_ring(Ring& ring, const UserRing& user) {
  drop_memory(ring);
  ring.completion = user.completion;
  ring.completion_shift = (user.flags & wide_completions) != 0 ? 1 : 0;
  ring.seen = __atomic_load_n(user.completion.tail, __ATOMIC_ACQUIRE);
  const std::uint32_t capacity =
      std::clamp(std::bit_ceil(2 * (*user.completion.mask + 1)), min_operations, max_operations);
  void* const memory = map_emptied_at_fork(capacity * (sizeof(Operation) + 8));
  if (memory == nullptr) return false;
  ring.capacity = capacity;
  ring.operations = static_cast<Operation*>(memory);
  ring.first = reinterpret_cast<std::uint32_t*>(ring.operations + capacity);
  ring.last = ring.first + capacity;
  ring.unused = 0;
  ring.never_used = 1;
  return true;
}

/// Returns the ring; with `makes`, makes it if it is not known. Null: it cannot be recorded.
Ring* ring_of(io_uring* key, bool makes) {
  if (key == nullptr || (makes && !is_known_library())) return nullptr;
  Ring* const all = makes ? rings() : all_rings.load(std::memory_order_acquire);
  if (all == nullptr) return nullptr;
  const std::size_t place = reinterpret_cast<std::uintptr_t>(key) / 16 % max_rings;
  for (std::size_t n = 0; n < max_rings; ++n)
    if (Ring& each = all[(place + n) % max_rings]; each.key.load(std::memory_order_acquire) == key) return &each;
  for (std::size_t n = 0; makes && n < max_rings; ++n) {
    Ring& each = all[(place + n) % max_rings];
    const io_uring* none = nullptr;
    if (each.key.compare_exchange_strong(none, key)) return &each;
  }
  return nullptr;
}

std::uint32_t list_of(const Ring& ring, std::uint64_t user_data) {
  return static_cast<std::uint32_t>((user_data ^ user_data >> 32) * 0x9e3779b97f4a7c15 >> 40) & (ring.capacity - 1);
}

void add(Ring& ring, const Operation& operation) {
  std::uint32_t place = ring.unused;
  if (place != 0)
    ring.unused = ring.operations[place].next;
  else if (ring.never_used < ring.capacity)
    place = ring.never_used++;
  else
    return count_lost(1);
  ring.operations[place] = operation;
  const std::uint32_t list = list_of(ring, operation.user_data);
  (ring.first[list] == 0 ? ring.first[list] : ring.operations[ring.last[list]].next) = place;
  ring.last[list] = place;
}

/// Removes the operation that was submitted first with this user data; false: there is none.
bool take(Ring& ring, std::uint64_t user_data, Operation& taken) {
  const std::uint32_t list = list_of(ring, user_data);
  std::uint32_t before = 0;
  for (std::uint32_t place = ring.first[list]; place != 0; before = place, place = ring.operations[place].next) {
    Operation& each = ring.operations[place];
    if (each.user_data != user_data) continue;
    taken = each;
    (before == 0 ? ring.first[list] : ring.operations[before].next) = each.next;
    if (ring.last[list] == place) ring.last[list] = before;
    each.call = Call::none;
    each.next = ring.unused;
    ring.unused = place;
    return true;
  }
  return false;
}

/// Records the operation with its result: its end is now.
void record_operation(const Operation& operation, std::int64_t result) {
  const std::uint16_t number = static_cast<std::uint16_t>(operation.call);
  std::int64_t offset = operation.offset;
  if (operation.is_at_file_offset && operation.fd >= 0)
    if (Description* const known = description_of(operation.fd); known->file == operation.file && known != &left_out)
      offset = known->moved_by(operation.fd, result);
  if (!operation.is_selected || uses[number] != Use::record) return;
  const Subject subject{.fd = operation.fd, .offset = offset, .length = operation.length, .file = operation.file};
  Recording recording(operation.call, subject, true);
  recording.change([&](Slot& slot) {
    slot.parent = 0;
    slot.start = operation.start;
    if (operation.is_at_file_offset) slot.flags = iosig::trace::derived_offset;
  });
  recording.end(result);
}

/// Records the completions between those that were seen and the latest one.
void record_new_completions(Ring& ring) {
  const unsigned end = __atomic_load_n(ring.completion.tail, __ATOMIC_ACQUIRE);
  const unsigned mask = *ring.completion.mask;
  if (end - ring.seen > mask + 1) {  // the kernel has used their places again
    count_lost(end - ring.seen - (mask + 1));
    ring.seen = end - (mask + 1);
  }
  for (; ring.seen != end; ++ring.seen) {
    const io_uring_cqe& completion = *reinterpret_cast<const io_uring_cqe*>(
        reinterpret_cast<const std::byte*>(ring.completion.completions) +
        ((std::size_t{ring.seen & mask} * sizeof(io_uring_cqe)) << ring.completion_shift));
    Operation operation{};
    if ((completion.flags & IORING_CQE_F_MORE) == 0 && take(ring, completion.user_data, operation))
      record_operation(operation, completion.res);
  }
}

Call call_of(unsigned opcode) {
  switch (opcode) {
    case IORING_OP_READ:
    case IORING_OP_READV:
    case IORING_OP_READ_FIXED: return Call::io_uring_read;
    case IORING_OP_WRITE:
    case IORING_OP_WRITEV:
    case IORING_OP_WRITE_FIXED: return Call::io_uring_write;
    case IORING_OP_FSYNC:
    case IORING_OP_SYNC_FILE_RANGE: return Call::io_uring_fsync;
    case IORING_OP_FALLOCATE: return Call::io_uring_fallocate;
    default: return Call::none;
  }
}

std::int64_t length_of(const io_uring_sqe& request) {
  switch (request.opcode) {
    case IORING_OP_READV:
    case IORING_OP_WRITEV: {
      const auto* const pieces = reinterpret_cast<const iovec*>(request.addr);  // NOLINT(performance-no-int-to-ptr)
      if (readable_bytes(pieces, request.len * sizeof(iovec)) < request.len * sizeof(iovec))
        return iosig::trace::no_length;
      std::int64_t bytes = 0;
      for (unsigned n = 0; n < request.len; ++n) bytes += static_cast<std::int64_t>(pieces[n].iov_len);
      return bytes;
    }
    case IORING_OP_FSYNC: return request.len == 0 ? iosig::trace::no_length : request.len;
    case IORING_OP_FALLOCATE: return static_cast<std::int64_t>(request.addr);
    default: return request.len;
  }
}

/// Returns the operation that a request begins; its call is none if it is not to be recorded.
Operation operation_of(const Ring& ring, const io_uring_sqe& request) {
  Operation operation{};
  operation.call = call_of(request.opcode);
  if (operation.call == Call::none || (request.flags & no_completion) != 0) return {};
  operation.fd = -1;
  if ((request.flags & IOSQE_FIXED_FILE) != 0) {
    const auto place = static_cast<std::uint32_t>(request.fd);
    const RegisteredFile known = place < ring.file_count ? ring.files[place] : RegisteredFile{};
    if (known.is_known ? known.is_left_out : !is_every_file_traced()) return {};
    operation.file = known.file;
  } else {
    const Description* const description = description_of(request.fd);
    if (description == &left_out) return {};
    operation.file = description->file;
    operation.fd = request.fd;
  }
  operation.user_data = request.user_data;
  operation.length = length_of(request);
  const bool has_offset = request.opcode != IORING_OP_FSYNC || request.len != 0;
  const bool moves_bytes = operation.call == Call::io_uring_read || operation.call == Call::io_uring_write;
  operation.is_at_file_offset = moves_bytes && request.off == file_offset;
  operation.offset =
      !has_offset || operation.is_at_file_offset ? iosig::trace::no_offset : static_cast<std::int64_t>(request.off);
  return operation;
}

/// Whether the ring's memory is that of the ring that was met before.
bool is_same_ring(const Ring& ring, const UserRing& user) {
  return ring.operations != nullptr && ring.completion.tail == user.completion.tail &&
         static_cast<int>(__atomic_load_n(user.completion.tail, __ATOMIC_ACQUIRE) - ring.seen) >= 0;
}

/// Begins the ring if it is another one than before; false: there is no memory for it.
bool is_begun(Ring& ring, const UserRing& user) { return is_same_ring(ring, user) || begin_ring(ring, user); }

/// Records operations of which no completion has come: how they end is not known.
void end_operations(Ring& ring) {
  for (std::uint32_t place = 1; place < ring.never_used; ++place)
    if (ring.operations[place].call != Call::none) record_operation(ring.operations[place], -EINPROGRESS);
}

}  // namespace

void note_submissions(io_uring* key) {
  const runtime::ErrnoKept kept;
  const InUseRing held(ring_of(key, true));
  const auto& user = *reinterpret_cast<const UserRing*>(key);
  Ring* const ring = held.get();
  if (ring == nullptr || !is_begun(*ring, user)) return;
  const SubmissionQueue& queue = user.submission;
  const unsigned shift = (user.flags & wide_requests) != 0 ? 1 : 0, mask = *queue.mask;
  std::uint64_t start = 0;
  bool are_selected = false;
  for (unsigned n = queue.first_prepared; n != queue.end_prepared && n - queue.first_prepared <= mask; ++n) {
    const io_uring_sqe& request = queue.requests[(n & mask) << shift];
    if (request.opcode == IORING_OP_CLOSE && request.file_index == 0) closed(request.fd);
    Operation operation = operation_of(*ring, request);
    if (operation.call == Call::none) continue;
    if (start == 0) {
      are_selected = is_selected();
      start = now();
    }
    operation.start = start;
    operation.is_selected = are_selected;
    add(*ring, operation);
  }
}

void record_completions(io_uring* key) {
  Ring* const ring = ring_of(key, false);
  if (ring == nullptr) return;
  const runtime::ErrnoKept kept;
  const InUseRing held(ring);
  if (held.get() != nullptr && is_same_ring(*ring, *reinterpret_cast<const UserRing*>(key)))
    record_new_completions(*ring);
}

void forget_ring(io_uring* key) {
  Ring* const ring = ring_of(key, false);
  if (ring == nullptr) return;
  const runtime::ErrnoKept kept;
  const InUseRing held(ring);
  if (held.get() == nullptr) return;
  if (is_same_ring(*ring, *reinterpret_cast<const UserRing*>(key))) {
    record_new_completions(*ring);
    end_operations(*ring);
  }
  drop_memory(*ring);
  ring->key.store(nullptr, std::memory_order_release);
}

void note_registered(io_uring* key, unsigned first, const int* files, unsigned count) {
  const runtime::ErrnoKept kept;
  const InUseRing held(ring_of(key, true));
  const auto& user = *reinterpret_cast<const UserRing*>(key);
  Ring* const ring = held.get();
  if (ring == nullptr || !is_begun(*ring, user)) return;
  if (files == nullptr || std::uint64_t{first} + count > max_registered) count = 0;
  if (files == nullptr || first + count > ring->file_count) {
    const std::uint32_t wanted = files == nullptr ? 0 : first + count;
    auto* const grown =
        wanted == 0 ? nullptr : static_cast<RegisteredFile*>(map_emptied_at_fork(wanted * sizeof(RegisteredFile)));
    if (grown != nullptr) std::copy_n(ring->files, ring->file_count, grown);
    if (ring->files != nullptr) ::munmap(ring->files, ring->file_count * sizeof(RegisteredFile));
    ring->files = grown;
    ring->file_count = grown == nullptr ? 0 : wanted;
  }
  constexpr int unchanged = -2;  // IORING_REGISTER_FILES_SKIP
  for (unsigned n = 0; n < count && first + n < ring->file_count; ++n) {
    if (files[n] == unchanged) continue;
    const Description* const description = files[n] < 0 ? nullptr : description_of(files[n]);
    ring->files[first + n] = {.file = description == nullptr ? 0 : description->file,
                              .is_known = description != nullptr,
                              .is_left_out = description == &left_out};
  }
}

void end_rings() {
  Ring* const all = all_rings.load(std::memory_order_acquire);
  for (std::size_t n = 0; all != nullptr && n < max_rings; ++n) {
    const InUseRing held(all[n].key.load(std::memory_order_acquire) == nullptr ? nullptr : &all[n]);
    Ring* const ring = held.get();
    if (ring == nullptr || ring->operations == nullptr) continue;
    // The program may have unmapped it by itself.
    const CompletionQueue& queue = ring->completion;
    const std::size_t bytes = (std::size_t{sizeof(io_uring_cqe)} << ring->completion_shift);
    if (readable_bytes(queue.tail, sizeof *queue.tail) < sizeof *queue.tail ||
        readable_bytes(queue.mask, sizeof *queue.mask) < sizeof *queue.mask ||
        readable_bytes(queue.completions, bytes * (*queue.mask + 1)) < bytes * (*queue.mask + 1))
      continue;
    record_new_completions(*ring);
    end_operations(*ring);
  }
}

}  // namespace iosig::preload::trace
