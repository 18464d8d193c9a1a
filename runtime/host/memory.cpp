// The allocator: one lock, and a list of free pieces for each power of two. It is simple because the library needs
// little memory: a storage description, the program's signatures, and temporary data of each decision.
#include "host/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>

namespace iosig::runtime {
namespace {

struct Piece {
  alignas(16) std::size_t order;  ///< the piece has 2^order bytes, including this header
  [[nodiscard]] void* content() { return this + 1; }
};
static_assert(sizeof(Piece) == 16);

struct Free {
  Free* next;
};

constexpr std::size_t min_order = 5, largest_kept_order = 18;  // larger pieces are unmapped when they are freed
constexpr std::size_t chunk_bytes = std::size_t{1} << largest_kept_order;
constexpr std::size_t largest_small_order = 12, isolated_bytes = 64 << 10;

std::mutex lock;  // its holders have signals blocked (run_isolated.h)
Free* free_pieces[largest_kept_order + 1];
std::byte *fresh, *fresh_end;  ///< the part of the newest chunk that was never allocated
std::size_t runs;  ///< active run_isolated() calls; each reserves isolated_bytes at the end of `fresh` for small pieces

void* map(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// Makes sure that `fresh` has so many bytes. The caller holds the lock.
bool has_fresh(std::size_t bytes) {
  if (static_cast<std::size_t>(fresh_end - fresh) >= bytes) return true;
  const std::size_t mapped_bytes = std::max(chunk_bytes, bytes);
  auto* chunk = static_cast<std::byte*>(map(mapped_bytes));
  if (chunk == nullptr) return false;
  fresh = chunk;
  fresh_end = chunk + mapped_bytes;
  return true;
}

void* take(std::size_t order) {
  const std::size_t bytes = std::size_t{1} << order;
  if (order > largest_kept_order) return map(bytes);
  const std::lock_guard held(lock);
  if (Free* piece = free_pieces[order]) {
    free_pieces[order] = piece->next;
    return piece;
  }
  if (!has_fresh(bytes + (order > largest_small_order ? runs * isolated_bytes : 0))) return nullptr;
  return std::exchange(fresh, fresh + bytes);
}

void give(void* memory, std::size_t order) {
  if (order > largest_kept_order) {
    ::munmap(memory, std::size_t{1} << order);
    return;
  }
  const std::lock_guard held(lock);
  free_pieces[order] = new (memory) Free{free_pieces[order]};
}

}  // namespace

bool reserve_for_isolated() {
  const std::lock_guard held(lock);
  if (!has_fresh((runs + 1) * isolated_bytes)) return false;
  ++runs;
  return true;
}
void release_isolated() {
  const std::lock_guard held(lock);
  if (runs > 0) --runs;
}

void lock_memory() { lock.lock(); }
void unlock_memory() { lock.unlock(); }
void unlock_memory_of_child() {
  runs = 0;  // those runs belong to threads that only the parent has
  lock.unlock();
}

}  // namespace iosig::runtime

using namespace iosig::runtime;

// A sanitizer that instruments this library has its own definitions.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  const std::size_t order = std::max<std::size_t>(min_order, std::bit_width(bytes + sizeof(Piece) - 1));
  void* memory = bytes < (std::size_t{1} << 40) ? take(order) : nullptr;
  return memory == nullptr ? nullptr : (new (memory) Piece{order})->content();
}

void* operator new(std::size_t bytes) {
  void* memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void operator delete(void* content) noexcept {
  if (content == nullptr) return;
  auto* piece = static_cast<Piece*>(content) - 1;
  give(piece, piece->order);
}

void operator delete(void* content, std::size_t) noexcept { operator delete(content); }

#endif
