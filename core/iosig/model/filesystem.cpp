#include "iosig/model/filesystem.h"

#include <linux/magic.h>

#include <algorithm>
#include <array>

#include "iosig/base/units.h"

namespace iosig {
namespace {

using Traits = FilesystemType::Traits;

constexpr Traits local{.follows_links = true};
constexpr Traits pooled{.has_no_device = true, .follows_links = true};
constexpr Traits memory{.is_volatile = true, .follows_links = true};
constexpr Traits unnumbered{.has_no_device = true};
constexpr Traits shared{.is_shared = true};
constexpr Traits none;

constexpr auto filesystems = std::to_array<FilesystemType>({
#define IOSIG_FILESYSTEM(...) {__VA_ARGS__},
#define IOSIG_COMPOSITE(name, magic, traits, max_file_bytes, reader) {name, magic, traits, max_file_bytes},
#include "iosig/model/filesystems.inc"
#undef IOSIG_FILESYSTEM
#undef IOSIG_COMPOSITE
});

template <class Value>
const FilesystemType* find(Value value, Value FilesystemType::*member) {
  const auto* const found = std::ranges::find(filesystems, value, member);
  return found == filesystems.end() ? nullptr : found;
}

}  // namespace

const FilesystemType* find_filesystem(std::string_view name) { return find(name, &FilesystemType::name); }

const FilesystemType* find_filesystem(std::uint32_t magic) {
  return magic == 0 ? nullptr : find(magic, &FilesystemType::magic);
}

bool is_volatile_filesystem(std::string_view name) {
  const FilesystemType* const type = find_filesystem(name);
  return type != nullptr && type->is.is_volatile;
}

bool is_shared_filesystem(std::string_view name) {
  const FilesystemType* const type = find_filesystem(name);
  return type != nullptr && type->is.is_shared;
}

std::optional<std::uint64_t> max_file_bytes_of(std::string_view name) {
  const FilesystemType* const type = find_filesystem(name);
  if (type == nullptr || type->max_file_bytes == 0) return std::nullopt;
  return type->max_file_bytes;
}

}  // namespace iosig
