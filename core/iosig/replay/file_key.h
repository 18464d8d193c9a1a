// Which open file of which process an access is on, as a key of hash tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "iosig/trace/trace.h"

namespace iosig {

struct FileKey {
  const trace::Process* process = nullptr;
  std::uint32_t file = 0;  ///< trace::Access::file
  bool operator==(const FileKey&) const = default;
};

struct FileKeyHash {
  std::size_t operator()(const FileKey& key) const {
    return std::hash<const void*>{}(key.process) ^ key.file * std::size_t{0x9e3779b97f4a7c15};
  }
};

}  // namespace iosig
