#include "plugin/common/destination.h"

#include <fmt/format.h>

#include <filesystem>

#include "iosig/base/text.h"
#include "iosig/config/storage_file.h"
#include "iosig/decide/placement.h"
#include "iosig/enact/circumstances.h"
#include "iosig/enact/user_directory.h"
#include "iosig/format/signature_text.h"

namespace iosig {
namespace {

/// Returns "directory/name": a unique directory for each place in the source, and the name of the file in it.
std::string directory_and_name(const SourcePlace& site) {
  std::error_code ignored;
  std::filesystem::path source = std::filesystem::absolute(site.file, ignored);
  if (source.empty()) source = site.file;
  const std::string place = fmt::format("{}:{}:{}", source.lexically_normal().string(), site.line, site.column);
  return fmt::format("{:016x}/{}-{}", fnv1a(place), source.stem().string(), site.line);
}

}  // namespace

tl::expected<Destination, NoDestination> choose_destination(const Signature& wanted, const Storage& storage,
                                                            const SourcePlace& site) {
  const auto given = circumstances_at(nullptr, wanted, storage, {}, [] { return ask_page_cache(); });
  if (!given) return tl::unexpected(NoDestination{given.error().message, {}});
  const Choice choice = choose_mount_point(wanted, storage, *given, [](MountPoint& mount) { ask_free_space(mount); });
  if (!choice.chosen) {
    NoDestination none{fmt::format("no mount point suits '{}': the file is not redirected", signature_text(wanted)),
                       {}};
    for (const Candidate& candidate : choice.candidates)
      none.reasons.push_back(fmt::format("{}: {}", candidate.mount_point, fmt::join(candidate.reasons, "; ")));
    return tl::unexpected(std::move(none));
  }
  const auto directory = open_user_directory(*choice.chosen);
  if (!directory)
    return tl::unexpected(NoDestination{
        fmt::format("the file is not redirected to '{}': {}", *choice.chosen, directory.error().message), {}});
  std::string warning;
  if (!wanted.total_bytes) {
    Storage asked = storage;
    // A server that does not respond would stop the compiler.
    for (MountPoint& mount : asked.mount_points)
      if (mount.path == choice.chosen || mount.visibility == Visibility::local) ask_free_space(mount);
    warning = room_warning(wanted, asked, *given, choice);
  }
  return Destination{directory->path + '/' + directory_and_name(site), std::move(warning)};
}

}  // namespace iosig
