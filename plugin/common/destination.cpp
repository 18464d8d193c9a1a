#include "plugin/common/destination.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>

#include "iosig/decide/placement.h"
#include "iosig/enact/user_folder.h"
#include "iosig/format/signature_text.h"
#include "iosig/format/storage_file.h"

namespace iosig {
namespace {

/// FNV-1a: the same on every machine and in every build.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

std::string file_name(const SourcePlace& site) {
  std::error_code ignored;
  std::filesystem::path source = std::filesystem::absolute(site.file, ignored);
  if (source.empty()) source = site.file;
  const std::string place = fmt::format("{}:{}:{}", source.lexically_normal().string(), site.line, site.column);
  return fmt::format("{}-{}-{:016x}", source.stem().string(), site.line, hash_of(place));
}

}  // namespace

tl::expected<std::string, NoDestination> choose_destination(const Signature& wanted, const Storage& storage,
                                                            const SourcePlace& site) {
  const Choice choice = choose_mount_point(wanted, storage, ask_free_space);
  if (!choice.chosen) {
    NoDestination none{fmt::format("no mount point suits '{}': the file is not redirected", signature_text(wanted)),
                       {}};
    for (const Candidate& candidate : choice.candidates)
      none.reasons.push_back(fmt::format("{}: {}", candidate.mount_point, fmt::join(candidate.reasons, "; ")));
    return tl::unexpected(std::move(none));
  }
  const auto folder = open_user_folder(*choice.chosen);
  if (!folder)
    return tl::unexpected(NoDestination{
        fmt::format("the file is not redirected to '{}': {}", *choice.chosen, folder.error().message), {}});
  return folder->path + '/' + file_name(site);
}

}  // namespace iosig
