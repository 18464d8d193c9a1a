// Reads of a file that are known before the program makes them: of an earlier run, or as the application says.
//
// Plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace iosig {

/// One read of a file, in bytes.
struct FileRead {
  std::int64_t offset = 0;
  std::int64_t length = 0;

  bool operator==(const FileRead&) const = default;
};

/// The reads of a file, stream after stream: processes and threads, each in its order.
struct KnownReads {
  std::vector<FileRead> reads;
  std::vector<std::size_t> ends = {};  ///< of the streams: ascending positions in `reads`; empty: all are one stream

  bool operator==(const KnownReads&) const = default;
};

inline constexpr std::uint64_t max_known_reads = 1 << 22;  ///< of a file: 64 MB while it is open

}  // namespace iosig
