// Opens a container before the program's MPI library opens it. One rank reads the index and passes it to all others.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace iosig::mpiio {

/// Keeps the container open while it lives, as one of the program's descriptors. An open of the same container in this
/// process then uses the index that is already known. Reports no failures: the MPI library's own open will report them.
class Ahead {
 public:
  Ahead() = default;
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;
  ~Ahead();

  /// Returns the index snapshot of the container at `path`, valid as long as this object lives; empty if there is none.
  std::span<const std::byte> read(const char* path);
  /// In another process: uses the snapshot that read() returned.
  void learn(const char* path, std::span<const std::byte> snapshot);

 private:
  void open(const char* path);

  int fd_ = -1;
  std::vector<std::byte> snapshot_;
};

}  // namespace iosig::mpiio
