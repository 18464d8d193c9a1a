// The data of a redirect where they are (enact/destination_name.h has the picture): found, with the files beside them,
// retired and deleted.
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

/// A file that a program made beside the data. Its name at home has the name of the data there: behind a link `a.db` to
/// `prog-12`, SQLite makes `prog-12-wal`, and looks for `a.db-wal` when the data are at home.
struct Companion {
  enum class Kind { file, link, other } kind = Kind::other;
  std::string name;
  std::string home_name = {};  ///< set by name_for_home
  std::uint64_t data_bytes = 0, allocated_bytes = 0;
};

struct Destination {
  Place data;                      ///< where the data are or would be
  std::optional<Place> directory;  ///< the redirect's own, in the user's directory; nothing: flat, or it is not there
  std::string path;                ///< of `directory` while it is not retired, as links to the data spell it
  std::string home_name;           ///< of the data; set by name_for_home
  std::vector<std::string> names;  ///< all in the redirect's own directory, sorted
  std::vector<Companion> companions;  ///< by name
  bool is_retired = false;            ///< `directory` and `data` are those of the retired one
  /// Both stand there: a program made data anew, under the name that a killed run had retired. Neither may go.
  bool is_double = false;
};

/// Opens the way to the data, proven to be this user's own (enact/user_directory): after a reboot another user may have
/// made one. Where the redirect's directory is missing, `data` names a file that does not exist. Fails as `system`.
[[nodiscard]] Result<Destination> open_destination(const JournalEntry& entry);

/// Sets the names at home: `home_name` for the data, and the companions' own with it in place of the data's.
void name_for_home(Destination& destination, const std::string& home_name);

/// The text at home of a companion that is a link to `target`. A target in the redirect's own directory becomes the
/// name of that file at home, since the directory goes; any other stays as it is.
[[nodiscard]] std::string target_at_home(const Destination& from, const std::string& target);

/// Gives data (the directory with all in it, or the flat file) their retired name, so that no path leads to them any
/// more; `restore` takes that back, and does nothing where nothing is retired. Where a program made data anew under
/// their name, both stay, and it is `infeasible`.
[[nodiscard]] Result<void> retire(const Destination& destination, const JournalEntry& entry);
[[nodiscard]] Result<void> restore_retired(const JournalEntry& entry);

/// **Deletes** retired data for good; they have a complete copy elsewhere, or are unwanted. Nothing retired is fine.
[[nodiscard]] Result<void> remove_retired(const JournalEntry& entry);

/// Whether a checksum manifest (format/manifest.h) stands beside the data. A program's own file of that name is none.
[[nodiscard]] bool has_manifest(const Place& data);

}  // namespace iosig
