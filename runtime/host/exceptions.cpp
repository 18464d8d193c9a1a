// Memory for exceptions in the library, independent of the host's malloc.
//
// libstdc++ allocates an exception with malloc, and also the thread's list of exceptions if the library was loaded
// late. Without memory it terminates the program. In a signal handler that interrupted malloc it would deadlock. The
// definitions here replace those of libstdc++: an exception is allocated from the library's memory (memory.h) or, if
// that is exhausted, from a static reserve. The lists are in static thread-local memory.
#include <cxxabi.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

#include "host/table_section.h"

// A sanitizer that instruments this library has its own definitions.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace iosig::runtime {
namespace {

/// libstdc++ stores its header of an exception, at most 128 bytes, directly before the object. A dependent exception
/// has only the header.
constexpr std::size_t header_bytes = 256;
constexpr std::size_t spare_bytes = header_bytes + 256;  // no exception that is thrown here has a larger object

struct Spare {
  alignas(16) std::byte room[spare_bytes] = {};
  std::atomic<bool> is_taken{false};
};
IOSIG_TABLE constinit Spare spares[64];

void* take_spare() {
  for (Spare& spare : spares)
    if (!spare.is_taken.exchange(true, std::memory_order_acquire)) return spare.room;
  return nullptr;
}

void* room_for(std::size_t bytes) {
  void* room = ::operator new(bytes, std::nothrow);
  if (room == nullptr && bytes > spare_bytes) std::terminate();
  // If all spares are in use by other threads, waits for one: each is released when its exception is caught.
  while (room == nullptr)
    if ((room = take_spare()) == nullptr) ::sched_yield();
  return std::memset(room, 0, bytes);
}

void give_back(void* room) {
  for (Spare& spare : spares)
    if (spare.room == room) return spare.is_taken.store(false, std::memory_order_release);
  ::operator delete(room);
}

}  // namespace
}  // namespace iosig::runtime

using namespace iosig::runtime;

namespace __cxxabiv1 {

struct __cxa_eh_globals {
  void* caught;
  unsigned uncaught;
};

extern "C" {

void* __cxa_allocate_exception(std::size_t bytes) noexcept {
  return static_cast<std::byte*>(room_for(header_bytes + bytes)) + header_bytes;
}
void __cxa_free_exception(void* object) noexcept { give_back(static_cast<std::byte*>(object) - header_bytes); }

__cxa_dependent_exception* __cxa_allocate_dependent_exception() noexcept {
  return static_cast<__cxa_dependent_exception*>(room_for(header_bytes));
}
void __cxa_free_dependent_exception(__cxa_dependent_exception* dependent) noexcept { give_back(dependent); }

__cxa_eh_globals* __cxa_get_globals() noexcept {
  static constinit thread_local __cxa_eh_globals own __attribute__((tls_model("initial-exec"))) = {};
  return &own;
}
__cxa_eh_globals* __cxa_get_globals_fast() noexcept { return __cxa_get_globals(); }

}  // extern "C"
}  // namespace __cxxabiv1

#endif
