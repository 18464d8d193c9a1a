// What is thrown in the library has room, whatever memory the host has left.
//
// libstdc++ asks malloc for an exception's memory, and for the thread's list of exceptions where the library was loaded
// late. Without memory it ends the program, and in a signal handler that interrupted malloc it would wait for ever. The
// definitions here take the place of its own: an exception lies in the library's memory (memory.h) or, if there is
// none, in a spare room that is part of the library; the lists lie in memory that each thread has from its beginning.
#include <cxxabi.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>

// A sanitizer that checks this library brings its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace iosig::runtime {
namespace {

/// libstdc++ keeps its own part of an exception, 128 bytes or less, just before the object. A dependent one has nothing
/// else.
constexpr std::size_t header_bytes = 256;
constexpr std::size_t spare_bytes = header_bytes + 256;  // no exception that is thrown here has an object of more

struct Spare {
  alignas(16) std::byte room[spare_bytes] = {};
  std::atomic<bool> is_taken{false};
};
constinit Spare spares[64];

void* take_spare() {
  for (Spare& spare : spares)
    if (!spare.is_taken.exchange(true, std::memory_order_acquire)) return spare.room;
  return nullptr;
}

void* room_for(std::size_t bytes) {
  void* room = ::operator new(bytes, std::nothrow);
  if (room == nullptr && bytes > spare_bytes) std::terminate();
  // So many threads have none at once that the spares are all taken; each is given back when its exception is caught.
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
