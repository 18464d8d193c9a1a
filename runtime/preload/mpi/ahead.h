// A container that is opened before the program's MPI library opens it: so that one rank reads its index, and the
// others know it from there.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace iosig::mpiio {

/// Keeps the container open, as one of the program's descriptors, while it lives: who opens it meanwhile in this
/// process finds what is known of it. Of failures nothing is told: the MPI library will meet them itself.
class Ahead {
 public:
  Ahead() = default;
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;
  ~Ahead();

  /// What there is to know of the container at `path`; nothing if there is none. As long as this lives.
  std::span<const std::byte> read(const char* path);
  /// In another process: knows what read() gave there.
  void learn(const char* path, std::span<const std::byte> snapshot);

 private:
  void open(const char* path);

  int fd_ = -1;
  std::vector<std::byte> snapshot_;
};

}  // namespace iosig::mpiio
