// How calls on libc's streams are recorded (hooks/calls.txt, `trace=`). The reads and writes that libc makes for them
// appear as calls of their own below them (hooks/calls_stdio.cpp).
#pragma once

#include <algorithm>
#include <cstring>

#include "preload/trace/subjects.h"

namespace iosig::preload::trace {

/// fread(3), fwrite(3): `count` items of `size` bytes. The recorded result is in bytes.
template <Call call, class Make>
[[nodiscard]] std::size_t items(FILE* file, std::size_t size, std::size_t count, const Make& make) {
  return stream<call>(file, static_cast<std::int64_t>(size * count), make,
                      [size](std::size_t done) { return static_cast<std::int64_t>(size * done); });
}

/// fgets(3): the recorded result is the length of the line.
template <Call call, class Make>
[[nodiscard]] char* line(FILE* file, const char* text, const Make& make) {
  return stream<call>(file, iosig::trace::no_length, make, [text](const char* found) {
    return found == nullptr ? std::int64_t{0} : static_cast<std::int64_t>(std::strlen(text));
  });
}

/// fputs(3).
template <Call call, class Make>
[[nodiscard]] int put(FILE* file, const char* text, const Make& make) {
  return stream<call>(file, static_cast<std::int64_t>(std::strlen(text)), make, [text](int done) {
    return done < 0 ? as_result(done) : static_cast<std::int64_t>(std::strlen(text));
  });
}

/// Calls that return a number of bytes, or 0.
template <Call call, class Make>
[[nodiscard]] auto counted(FILE* file, const Make& make) {
  return stream<call>(file, iosig::trace::no_length, make, [](auto done) { return as_result(done); });
}

/// fscanf(3): the recorded result is the number of items, 0 at the end of the file.
template <Call call, class Make>
[[nodiscard]] int scanned(FILE* file, const Make& make) {
  return stream<call>(file, iosig::trace::no_length, make, [](int items) { return std::int64_t{std::max(items, 0)}; });
}

/// fseek(3): the offset is the argument.
template <Call call, class Make>
[[nodiscard]] int seeks(FILE* file, std::int64_t offset, const Make& make) {
  return stream<call>(file, offset, make, [](int done) { return as_result(done); });
}

/// Returns the flags of open(2) that a mode of fopen(3) means; 0 for a null pointer.
[[nodiscard]] inline int flags_of(const char* mode) {
  if (mode == nullptr) return 0;
  const bool updates = std::strchr(mode, '+') != nullptr;
  switch (*mode) {
    case 'w': return (updates ? O_RDWR : O_WRONLY) | O_CREAT | O_TRUNC;
    case 'a': return (updates ? O_RDWR : O_WRONLY) | O_CREAT | O_APPEND;
    default: return updates ? O_RDWR : O_RDONLY;
  }
}

}  // namespace iosig::preload::trace
