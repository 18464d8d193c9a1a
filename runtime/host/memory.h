// The library's own allocator, behind every `new` in it. It never calls malloc: a signal handler of the host that
// interrupts malloc and opens a file would deadlock.
#pragma once

namespace iosig::runtime {

/// Reserves memory for the small allocations of one run_isolated(), enough for thousands of them: destructors of
/// nlohmann::json allocate, and would terminate the host if that failed. Returns false if there is no memory.
[[nodiscard]] bool reserve_for_isolated();
void release_isolated();

/// Around fork: the child then gets the memory in a sound state, whatever other threads did.
void lock_memory();
void unlock_memory();
void unlock_memory_of_child();

}  // namespace iosig::runtime
