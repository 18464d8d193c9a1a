// Reads and writes of an open container: read(2), write(2) and all their variants end here. The functions that take an
// OpenFile return the result of the call or -errno. The calling thread must hold an EngineGuard.
#pragma once

#include <sys/uio.h>

#include <span>

#include "preload/files/open_file.h"

namespace iosig::preload {

/// As an offset: the call uses and moves the file offset.
inline constexpr std::int64_t at_file_offset = -1;

/// Complete implementations of read(2) and pread(2), write(2) and pwrite(2). They return -1 with errno on failure.
///
/// Flattened: kernels that protect their own return instructions empty the processor's return predictor. After a system
/// call, each return through the calling functions is then mispredicted, which costs 10 ns per function.
[[nodiscard, gnu::flatten]] ssize_t read_from(int fd, std::span<std::byte> bytes, off_t offset);
[[nodiscard, gnu::flatten]] ssize_t write_to(int fd, std::span<const std::byte> bytes, off_t offset);

[[nodiscard]] std::int64_t put(OpenFile& file, std::span<const std::byte> bytes, std::int64_t offset);
[[nodiscard]] std::int64_t get(OpenFile& file, std::span<std::byte> bytes, std::int64_t offset);
/// Like put() and get() for several parts. All parts are written as one write.
[[nodiscard]] std::int64_t put_parts(OpenFile& file, const iovec* parts, int count, std::int64_t offset);
[[nodiscard]] std::int64_t get_parts(OpenFile& file, const iovec* parts, int count, std::int64_t offset);
/// Returns the size of the file, or -errno.
[[nodiscard]] std::int64_t end_of(OpenFile& file);
[[nodiscard]] std::int64_t seek(OpenFile& file, std::int64_t offset, int whence);
[[nodiscard]] int sync(OpenFile& file);

/// Called when the process exits: from now on each write completes its index at once, because no later call closes the
/// writer.
void begin_exit();

}  // namespace iosig::preload
