// Memory that a program names in a call, and which need not be there: where this library itself reads or writes it, the
// kernel is asked before, as a system call would answer EFAULT where this library would end the program.
#pragma once

#include <cstddef>

namespace iosig::preload {

/// How many of the bytes can be read, from the first on. One short system call for each page.
[[nodiscard]] std::size_t readable_bytes(const void* memory, std::size_t count);

/// Fills with zeros; false: not all of it can be written.
[[nodiscard]] bool fill_with_zeros_if_there(std::byte* memory, std::size_t count);

}  // namespace iosig::preload
