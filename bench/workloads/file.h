// The files that a workload works on, through POSIX or (mpi_workers.cpp) MPI-IO.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "iosig/base/result.h"

namespace iosig::workloads {

class File {
 public:
  virtual ~File() = default;
  /// All of `bytes`. Fails as write_failure (iosig/base/files.h).
  virtual Result<void> write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) = 0;
  /// All of `bytes`; `infeasible` where the file ends before.
  virtual Result<void> read(std::uint64_t offset_bytes, std::span<std::byte> bytes) = 0;
  virtual Result<void> sync() = 0;
};

/// Opens what create_file has made.
[[nodiscard]] Result<std::unique_ptr<File>> open_posix(const std::string& path, bool for_writing);

/// A new, empty file; an existing one is refused, or with `force`, if it is an ordinary one, emptied.
[[nodiscard]] Result<void> create_file(const std::string& path, bool force);

/// The size of the file, which must be an ordinary one.
[[nodiscard]] Result<std::uint64_t> size_of(const std::string& path);

}  // namespace iosig::workloads
