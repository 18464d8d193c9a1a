// Determines the state of a redirect: what programs have done to the link and the data since it was made.
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
  empty,        ///< a link leads to a file that was never written; an empty job directory
  filled,       ///< a job directory that is not empty
  orphan,       ///< the data exist, but no link leads to them
  replaced,     ///< the data exist, but the path is another file
  gone,         ///< neither link nor data exist
  unreachable,  ///< the data or the link cannot be inspected: not mounted, lost in a power failure, on another machine
};
[[nodiscard]] const char* name_of(RedirectState state);

/// Links of the directories already read: directory -> target -> names. Reused for many surveys, so that each directory
/// is read once.
using KnownLinks = std::map<std::string, std::multimap<std::string, std::string>>;

struct Survey {
  RedirectState state = RedirectState::gone;
  std::optional<Place> link;               ///< the link to the data, which a program may have renamed
  std::optional<Destination> destination;  ///< absent: unreachable
  std::string path;                        ///< where the link is, or should be
  bool has_data = false;                   ///< the file itself exists; its companions may exist without it
  std::uint64_t data_bytes = 0;            ///< of the file and its companions

  [[nodiscard]] bool has_companions() const { return destination && !destination->companions.empty(); }
  bool cut_short = false;            ///< a run of finalize was killed and left temporary names beside the link
  std::string why;                   ///< reason for `unreachable`, one sentence
  bool is_home_unreachable = false;  ///< `unreachable`, but a link may lead to the data, so they are not lost
};

/// Changes nothing. Finds a renamed link in the directory of the entry's path, even if that directory was renamed
/// (enact/home.h), but not elsewhere; also finds a link that a killed run moved out of its place. Links or data that
/// cannot be inspected are `unreachable`, never gone.
[[nodiscard]] Survey survey(const JournalEntry& entry, KnownLinks* known = nullptr);

/// Returns the paths, sorted, of this user's links in the directory of `link`, except `link`, that lead to the entry's
/// destination: copies of the link (`cp -a`, tar, git).
[[nodiscard]] std::vector<std::string> links_beside(const Place& link, const JournalEntry& entry, KnownLinks& known);

/// Returns the entries for `path`; empty if it is not redirected. Makes up an entry for a link without one that leads
/// into this user's own directory (made at compile time, or the journal was lost). The entry's path becomes the current
/// path of the link. A link to any other place, or one that another user made, is `infeasible`.
[[nodiscard]] Result<std::vector<JournalEntry>> redirects_at(const Journal& journal, std::string path);

}  // namespace iosig
