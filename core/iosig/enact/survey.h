// Looks at what has become of a redirect: what programs did to the link and to the data since it was made.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "iosig/enact/destination.h"
#include "iosig/enact/journal_directory.h"

namespace iosig {

enum class RedirectState {
  linked,       ///< a link leads to the data
  empty,        ///< a link leads to a file that nobody wrote; a job's directory that holds nothing
  filled,       ///< a job's directory that holds something
  orphan,       ///< the data are there, but no link leads to them
  replaced,     ///< the data are there, but something else stands at the path
  gone,         ///< neither link nor data
  unreachable,  ///< the data or the link cannot be looked at: not mounted, lost with power, on another machine
};
[[nodiscard]] const char* name_of(RedirectState state);

/// Links of the directories that were read: directory -> target -> names. Kept over many surveys, each directory is
/// read once.
using KnownLinks = std::map<std::string, std::multimap<std::string, std::string>>;

struct Survey {
  RedirectState state = RedirectState::gone;
  std::optional<Place> link;               ///< the link that leads to the data, which a program may have renamed
  std::optional<Destination> destination;  ///< absent: unreachable
  std::string path;                        ///< where the link is, or was to be
  bool has_data = false;                   ///< the file itself; its companions may be there without it
  std::uint64_t data_bytes = 0;            ///< of the file and its companions

  [[nodiscard]] bool has_companions() const { return destination && !destination->companions.empty(); }
  bool cut_short = false;            ///< a run of finalize was killed here, and left its names beside the link
  std::string why;                   ///< of `unreachable`: one sentence
  bool is_home_unreachable = false;  ///< of `unreachable`: a link may lead to the data, which are not lost
};

/// Changes nothing. A link that a program renamed is found in the directory of the entry's path, also where that
/// directory has another name now (enact/home.h), not elsewhere; one that a killed run had taken out counts. What
/// cannot be looked at is `unreachable`, never gone.
[[nodiscard]] Survey survey(const JournalEntry& entry, KnownLinks* known = nullptr);

/// This user's links in the directory of `link`, but `link` itself, that lead to the entry's destination: paths, in
/// order. A copy of a link (`cp -a`, tar, git) is one.
[[nodiscard]] std::vector<std::string> links_beside(const Place& link, const JournalEntry& entry, KnownLinks& known);

/// What is redirected at `path`: its entries, or, for a link into this user's own directory that has none (made at
/// compile time, or the journal was lost), an entry made up from the link. Empty: nothing is. The entry's path becomes
/// the place where the link is found. A link to anywhere else, or that another user made, is refused as `infeasible`.
[[nodiscard]] Result<std::vector<JournalEntry>> redirects_at(const Journal& journal, std::string path);

}  // namespace iosig
