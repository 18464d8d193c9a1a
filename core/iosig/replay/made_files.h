// The files that a replay has made, which alone it opens, empties, renames and deletes: its processes share the list,
// so that each knows the files of the others.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace iosig {

class MadeFiles {
 public:
  /// For at most so many files at a time. Children made by fork() share it.
  explicit MadeFiles(std::size_t most);
  [[nodiscard]] bool is_made() const { return !table_.empty(); }

  /// Once for each file that is made. Returns false if there is no room left.
  bool add(const struct stat& file);
  [[nodiscard]] bool has(const struct stat& file) const;
  /// Once for each file whose last name was deleted: another program's file may get its number. If another process of
  /// the replay has got it already, and added its file, that one stays.
  void forget(const struct stat& file);

  /// A number that every process changes when it renames or removes a directory: directories that others keep open by
  /// their names may have other names then.
  [[nodiscard]] std::uint64_t generation() const { return generation_->load(); }
  void begin_generation() { ++*generation_; }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(void* pages) const;
  };
  [[nodiscard]] std::atomic<std::uint64_t>* find(std::uint64_t key) const;

  std::unique_ptr<void, Unmap> pages_;
  std::atomic<std::uint64_t>* generation_ = nullptr;
  std::span<std::atomic<std::uint64_t>> table_;  ///< a hash table of keys; 0: was never used; 1: is free again
};

}  // namespace iosig
