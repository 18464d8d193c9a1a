// Names of destinations: each redirect has a directory of its own, below the user directory of a mount point.
//
// Programs derive file names from the path that they resolve: behind a link, SQLite creates `a.db-wal` beside the data,
// an editor its swap file. Every such file in the redirect's own directory belongs to the stream: a companion.
//
//   /dev/shm/.iosig-1000/5f0c9a3e11d2b764/a.db       the data
//   /dev/shm/.iosig-1000/5f0c9a3e11d2b764/a.db-wal   a companion
//   /dev/shm/.iosig-1000/5f0c9a3e11d2b764.settled    the same directory, retired: its content is at home, durable
//   /dev/shm/.iosig-1000/5f0c9a3e11d2b764.a.db       a flat destination: early versions made these; they still settle
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace iosig {

inline constexpr std::size_t id_digits = 16;

/// The parts of a destination's path.
struct DestinationName {
  std::string mount_point;
  std::string id;              ///< id of the redirect: 16 lower-case hexadecimal digits
  std::string name;            ///< name of the data; without the id for a flat destination
  bool has_directory = false;  ///< false: flat, or a job directory
};

/// Parses the path of a destination. No value if `path` is not below this user's directory on a mount point, or does
/// not begin with an id there.
[[nodiscard]] std::optional<DestinationName> parse_destination(std::string_view path);

/// Returns the id at the beginning of `name` in a user directory: the name of a directory, a retired one, a flat
/// destination or a job directory. No value for other names.
[[nodiscard]] std::optional<std::string_view> id_in(std::string_view name);

/// Returns the retired name of data that begin with `id`; is_retired_name() tests for one.
[[nodiscard]] std::string retired_name(std::string_view id);
[[nodiscard]] bool is_retired_name(std::string_view name);

}  // namespace iosig
