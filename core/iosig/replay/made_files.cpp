#include "iosig/replay/made_files.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>

namespace iosig {
namespace {

constexpr std::uint64_t never_used = 0, free_again = 1;

/// Files of one file system have different keys but by a chance of 2^-64.
std::uint64_t key_of(const struct stat& file) {
  std::uint64_t key =
      (static_cast<std::uint64_t>(file.st_ino) ^ static_cast<std::uint64_t>(file.st_dev) << 40) * 0x9e3779b97f4a7c15u;
  key ^= key >> 32;
  return key <= free_again ? key + 2 : key;
}

}  // namespace

void MadeFiles::Unmap::operator()(void* pages) const { ::munmap(pages, bytes); }

MadeFiles::MadeFiles(std::size_t most) {
  const std::size_t places = std::bit_ceil(4 * most + 64);
  const std::size_t bytes = (places + 1) * sizeof(std::atomic<std::uint64_t>);
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return;
  pages_ = {pages, Unmap{bytes}};
  generation_ = static_cast<std::atomic<std::uint64_t>*>(pages);
  table_ = {generation_ + 1, places};  // zeros are atomics that are 0
}

std::atomic<std::uint64_t>* MadeFiles::find(std::uint64_t key) const {
  for (std::size_t n = 0; n < table_.size(); ++n) {
    std::atomic<std::uint64_t>& place = table_[(key + n) % table_.size()];
    const std::uint64_t found = place.load();
    if (found == key) return &place;
    if (found == never_used) return nullptr;
  }
  return nullptr;
}

bool MadeFiles::add(const struct stat& file) {
  const std::uint64_t key = key_of(file);
  for (std::size_t n = 0; n < table_.size(); ++n) {
    std::atomic<std::uint64_t>& place = table_[(key + n) % table_.size()];
    std::uint64_t found = place.load();
    while (found == never_used || found == free_again)
      if (place.compare_exchange_weak(found, key)) return true;
  }
  return false;
}

bool MadeFiles::has(const struct stat& file) const { return find(key_of(file)) != nullptr; }

void MadeFiles::forget(const struct stat& file) {
  const std::uint64_t key = key_of(file);
  while (std::atomic<std::uint64_t>* const place = find(key)) {
    std::uint64_t found = key;
    if (place->compare_exchange_strong(found, free_again)) return;
  }
}

}  // namespace iosig
