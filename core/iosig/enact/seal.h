// Seals data that stay where they are: those declared `tamperproof` or `archive`. The chosen mount point has that
// property; the requested path lacks it.
//
// Sealed data have a checksum manifest beside them (format/manifest), which also identifies them as sealed: the journal
// entry is removed, the link stays. Tamperproof data are also protected as far as the file system and this user's
// rights permit: fs-verity (the kernel refuses every change for good), read-only mode, the immutable flag (not even the
// owner can remove them; needs CAP_LINUX_IMMUTABLE).
//
//   data                     as the run left it
//   data, read-only          tamperproof only; a run that was killed here starts again
//   data, manifest           flushed; a later run finds it and completes the seal
//   data, manifest, flags    sealed
//
// Nettle computes SHA-256. Only the command settles, so only the command is linked with it: never libiosig or a
// plugin.
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
  std::string sha256;                       ///< empty in a dry run for data that have no manifest yet
  std::vector<const char*> closed_by = {};  ///< "fs-verity", "read-only", "immutable": protects the data now
};

/// Whether settling keeps the data where they are: their signature says so, or they have a manifest.
[[nodiscard]] bool stays_sealed(const Place& data, const Signature& signature);

/// Seals the data. Safe to repeat and to kill: keeps a manifest that matches the data's size and modification time, and
/// completes the missing steps. If the manifest does not match, archived data were rewritten and get a new one;
/// tamperproof data were altered. Refusals are `infeasible` and change nothing: data that a program still writes,
/// altered tamperproof data, not a regular file.
[[nodiscard]] Result<Seal> seal(const Place& data, const JournalEntry& entry, bool dry_run,
                                const CopyProgress& progress = {});

/// Deletes the manifest of data that are given up. Does not clear the immutable flag, which is left to an
/// administrator.
[[nodiscard]] Result<void> remove_manifest(const Place& data);

/// The result of comparing data with their manifest.
struct Verdict {
  Manifest manifest;
  std::string manifest_path;
  std::uint64_t size_bytes = 0;
  std::string sha256;                       ///< empty if the size differs; the data are then not read
  std::vector<const char*> closed_by = {};  ///< as in Seal
  [[nodiscard]] bool intact() const { return sha256 == manifest.sha256; }
};

/// Compares data with their manifest. `bad_input`: no manifest, or a damaged one; `infeasible`: the data are gone.
/// `copy_of_manifest`: path of a manifest to use instead of the one beside the data.
[[nodiscard]] Result<Verdict> verify_sealed(const Place& data, const std::string& copy_of_manifest = {},
                                            const CopyProgress& progress = {});

}  // namespace iosig
