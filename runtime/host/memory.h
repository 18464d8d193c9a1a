// The library's own allocator, behind every `new` in it. It never calls malloc: a signal handler of the host that
// interrupts malloc and opens a file would deadlock.
#pragma once

namespace iosig::runtime {

/// Reserves memory for thousands of small allocations in one run_isolated(). The destructors of nlohmann::json allocate
/// memory, and would terminate the host if that failed. Returns false if there is no memory.
[[nodiscard]] bool reserve_for_isolated();
void release_isolated();

/// Called around fork(): the child gets the memory in a consistent state, even if other threads were allocating.
void lock_memory();
void unlock_memory();
void unlock_memory_of_child();

}  // namespace iosig::runtime
