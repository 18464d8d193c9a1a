// Checks of memory that the program passes to a call. The memory may be invalid: a system call would fail with EFAULT,
// but this library would crash the program. Therefore it asks the kernel before it reads or writes such memory itself.
#pragma once

#include <cstddef>

namespace iosig::preload {

/// Returns how many of the bytes are readable, counted from the first. Costs one short system call per page.
[[nodiscard]] std::size_t readable_bytes(const void* memory, std::size_t count);

/// Fills the memory with zeros. Returns false, and writes nothing, if not all of it is writable.
[[nodiscard]] bool fill_with_zeros_if_there(std::byte* memory, std::size_t count);

}  // namespace iosig::preload
