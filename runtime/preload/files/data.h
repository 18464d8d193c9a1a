// The bytes of an open container: what read(2), write(2) and all their variants come down to. Those that take an
// OpenFile give what the call gives, or -errno; the thread holds a ReentrancyGuard.
#pragma once

#include <sys/uio.h>

#include <span>

#include "preload/files/open_file.h"

namespace iosig::preload {

/// Where a file's own offset is meant.
inline constexpr std::int64_t at_file_offset = -1;

/// The whole answer to read(2) and pread(2), write(2) and pwrite(2).
///
/// Flat: kernels that guard their own returns leave the processor no guess for those of the functions that a system
/// call came through, 10 ns each.
[[nodiscard, gnu::flatten]] ssize_t read_from(int fd, std::span<std::byte> bytes, off_t offset);
[[nodiscard, gnu::flatten]] ssize_t write_to(int fd, std::span<const std::byte> bytes, off_t offset);

[[nodiscard]] std::int64_t put(OpenFile& file, std::span<const std::byte> bytes, std::int64_t offset);
[[nodiscard]] std::int64_t get(OpenFile& file, std::span<std::byte> bytes, std::int64_t offset);
/// Of several parts; written as one.
[[nodiscard]] std::int64_t put_parts(OpenFile& file, const iovec* parts, int count, std::int64_t offset);
[[nodiscard]] std::int64_t get_parts(OpenFile& file, const iovec* parts, int count, std::int64_t offset);
[[nodiscard]] std::int64_t seek(OpenFile& file, std::int64_t offset, int whence);
[[nodiscard]] int sync(OpenFile& file);

/// What exit handlers write from now on is finished at once, as nobody will close it.
void begin_exit();

}  // namespace iosig::preload
