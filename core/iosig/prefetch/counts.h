// Counts the reads and the prefetched bytes of a stream, of a file, or of all files.
#pragma once

#include <cstdint>

namespace iosig::prefetch {

/// In bytes; what the program asked for, not what the kernel read.
struct Counts {
  std::uint64_t reads = 0, read_bytes = 0;
  std::uint64_t useful_bytes = 0;  ///< prefetched and there before the program read them
  std::uint64_t late_bytes = 0;    ///< expected, but the program came first
  std::uint64_t wasted_bytes = 0;  ///< prefetched, and not read by the time that they were given up
  std::uint64_t cached_bytes = 0;  ///< expected, and in memory already
  Counts& operator+=(const Counts& other);
};

}  // namespace iosig::prefetch
