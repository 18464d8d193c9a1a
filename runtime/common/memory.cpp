// A lock and a list of free pieces for each power of two. Small, since a process keeps little here: a storage
// description, its signatures, and what one decision needs.
#include "memory.h"

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
  alignas(16) std::size_t order;  ///< it has 2^order bytes, this header included
  [[nodiscard]] void* content() { return this + 1; }
};
static_assert(sizeof(Piece) == 16);

struct Free {
  Free* next;
};

constexpr std::size_t least_order = 5, largest_kept_order = 18;  // larger ones go back to the system at once
constexpr std::size_t chunk_bytes = std::size_t{1} << largest_kept_order;

std::mutex lock;  // those who hold it take no signals (guest.h)
Free* free_pieces[largest_kept_order + 1];
std::byte *fresh, *fresh_end;  ///< the part of the newest chunk that was never given out

void* map(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void* take(std::size_t order) {
  const std::size_t bytes = std::size_t{1} << order;
  if (order > largest_kept_order) return map(bytes);
  const std::lock_guard held(lock);
  if (Free* piece = free_pieces[order]) {
    free_pieces[order] = piece->next;
    return piece;
  }
  if (static_cast<std::size_t>(fresh_end - fresh) < bytes) {
    auto* chunk = static_cast<std::byte*>(map(chunk_bytes));
    if (chunk == nullptr) return nullptr;
    fresh = chunk;
    fresh_end = chunk + chunk_bytes;
  }
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

void lock_memory() { lock.lock(); }
void unlock_memory() { lock.unlock(); }

}  // namespace iosig::runtime

using namespace iosig::runtime;

// A sanitizer that checks this library brings its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t bytes) {
  const std::size_t order = std::max<std::size_t>(least_order, std::bit_width(bytes + sizeof(Piece) - 1));
  void* memory = bytes < (std::size_t{1} << 40) ? take(order) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return (new (memory) Piece{order})->content();
}

void operator delete(void* content) noexcept {
  if (content == nullptr) return;
  auto* piece = static_cast<Piece*>(content) - 1;
  give(piece, piece->order);
}

void operator delete(void* content, std::size_t) noexcept { operator delete(content); }

#endif
