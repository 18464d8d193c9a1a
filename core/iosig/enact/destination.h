// The data of a redirect at their destination (layout: enact/destination_name.h): finds them with the files beside
// them, retires and deletes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/enact/destination_name.h"
#include "iosig/enact/place.h"
#include "iosig/enact/user_directory.h"
#include "iosig/format/journal.h"

namespace iosig {

/// A file that a program made beside the data. At home, its name contains the data's home name instead: behind a link
/// `a.db` to `prog-12`, SQLite creates `prog-12-wal`, and expects `a.db-wal` once the data are at home.
struct Companion {
  enum class Kind { file, link, other } kind = Kind::other;
  std::string name;
  std::string home_name = {};  ///< set by name_for_home
  std::uint64_t data_bytes = 0, allocated_bytes = 0;
};

struct Destination {
  Place data;                      ///< where the data are or would be
  std::optional<Place> directory;  ///< the redirect's own directory in the user directory; no value: flat, or missing
  std::string path;                ///< path of `directory` while it is not retired, as in links to the data
  std::string home_name;           ///< name of the data at home; set by name_for_home
  std::vector<std::string> names;  ///< all names in the redirect's own directory, sorted
  std::vector<Companion> companions;  ///< sorted by name
  bool is_retired = false;            ///< `directory` and `data` are those of the retired one
  /// Both exist: a program created new data under the name of those that a killed run had retired. Both must be kept.
  bool is_double = false;
};

/// Opens the directory of the data, after proving that it is this user's own (enact/user_directory): after a reboot an
/// untrusted user may have created one. If the redirect's directory is missing, `data` names a file that does not
/// exist. Fails as `system`.
[[nodiscard]] Result<Destination> open_destination(const JournalEntry& entry);

/// Sets the names at home: `home_name` for the data; for each companion, its own name with `home_name` in place of the
/// data's name.
void name_for_home(Destination& destination, const std::string& home_name);

/// Returns the target, at home, of a companion that is a link to `target`. A target in the redirect's own directory
/// becomes the home name of that file, because the directory is removed; any other target is unchanged.
[[nodiscard]] std::string target_at_home(const Destination& from, const std::string& target);

/// Renames the data (the directory with its content, or the flat file) to their retired name, so no path leads to them
/// any more. restore_retired() renames them back, and does nothing if none are retired. If a program has created new
/// data under the old name, both are kept, and it is `infeasible`.
[[nodiscard]] Result<void> retire(const Destination& destination, const JournalEntry& entry);
[[nodiscard]] Result<void> restore_retired(const JournalEntry& entry);

/// **Deletes** retired data: a complete copy exists elsewhere, or they are unwanted. Succeeds if none are retired.
[[nodiscard]] Result<void> remove_retired(const JournalEntry& entry);

/// Whether the data have a checksum manifest (format/manifest.h). A program's own file of that name is not one.
[[nodiscard]] bool has_manifest(const Place& data);

}  // namespace iosig
