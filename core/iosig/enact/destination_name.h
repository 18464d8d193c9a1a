// Where the bytes of a redirect are: a directory of its own for each redirect, below the user's directory of a mount
// point.
//
// Programs derive names from the path that they reach: behind a link, SQLite puts `a.db-wal` beside the data, an
// editor its swap file. In a directory that holds nothing else, each such file belongs to the stream: a companion.
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
  std::string id;              ///< of the redirect that made it: 16 lower-case hexadecimal digits
  std::string name;            ///< of the data; of a flat destination without the id
  bool has_directory = false;  ///< false: flat, or a job's directory
};

/// Nothing: `path` is not below the directory of this user on a mount point, or does not begin with an id there.
[[nodiscard]] std::optional<DestinationName> parse_destination(std::string_view path);

/// The id with which `name`, in a user's directory, begins: of a directory, a retired one, a flat destination or a
/// job's directory. Nothing for other names.
[[nodiscard]] std::optional<std::string_view> id_in(std::string_view name);

/// The retired name of data that begin with `id`, and whether `name` is one.
[[nodiscard]] std::string retired_name(std::string_view id);
[[nodiscard]] bool is_retired_name(std::string_view name);

}  // namespace iosig
