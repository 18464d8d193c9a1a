// Seals data that stay where they are: those declared `tamperproof` or `archive`, for the mount point that was chosen
// has the property and the path they were asked for lacks it.
//
// Sealed data have a checksum manifest beside them (format/manifest), which is also what tells that they are sealed:
// the journal forgets them, the link stays. Tamperproof data are moreover closed as far as the file system and this
// user's rights go: fs-verity (the kernel refuses every change for good), read-only mode, the immutable flag (not even
// their owner removes them; needs CAP_LINUX_IMMUTABLE).
//
//   data                     as the run left it
//   data, read-only          tamperproof only; a run that was killed here begins anew
//   data, manifest           synced; a later run finds it and does the rest
//   data, manifest, flags    sealed
//
// SHA-256 is libcrypto's. Only the command settles, so only the command is linked with it: never libiosig or a plugin.
#pragma once

#include <string>
#include <vector>

#include "iosig/enact/copy.h"
#include "iosig/enact/place.h"
#include "iosig/format/journal.h"
#include "iosig/format/manifest.h"

namespace iosig {

struct Seal {
  std::string manifest_path;
  std::string sha256;                       ///< empty in a dry run of data that have no manifest yet
  std::vector<const char*> closed_by = {};  ///< "fs-verity", "read-only", "immutable": what holds the data now
};

/// Whether settling keeps these data where they are: their signature says so, or a manifest stands beside them.
[[nodiscard]] bool stays_sealed(const Place& data, const Signature& signature);

/// Safe to repeat and to kill: a manifest that fits the data's size and time is kept, and only what is missing is done.
/// One that does not fit: archived data were written anew, and so is their manifest; tamperproof data were altered.
/// Refusals are `infeasible` and change nothing: data that a program still writes, tamperproof data that were altered,
/// what is no regular file.
[[nodiscard]] Result<Seal> seal(const Place& data, const JournalEntry& entry, bool dry_run,
                                const CopyProgress& progress = {});

/// Deletes the manifest of data that are given up. The immutable flag is not taken off: that is an administrator's act.
[[nodiscard]] Result<void> remove_manifest(const Place& data);

/// What holding data against their manifest shows.
struct Verdict {
  Manifest manifest;
  std::string manifest_path;
  std::uint64_t size_bytes = 0;
  std::string sha256;                       ///< empty when the size differs: they were not read
  std::vector<const char*> closed_by = {};  ///< as in Seal
  [[nodiscard]] bool intact() const { return sha256 == manifest.sha256; }
};

/// `bad_input`: no manifest, or a damaged one; `infeasible`: the data are gone. `copy_of_manifest`: a manifest that was
/// kept elsewhere, instead of the one beside the data.
[[nodiscard]] Result<Verdict> verify_sealed(const Place& data, const std::string& copy_of_manifest = {},
                                            const CopyProgress& progress = {});

}  // namespace iosig
