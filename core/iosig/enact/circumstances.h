// Gathers on this machine what a choice depends on besides the signature and the storage description.
#pragma once

#include <functional>

#include "iosig/base/page_cache.h"
#include "iosig/enact/place.h"
#include "iosig/model/circumstances.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Decisions that the caller has made already.
struct Asked {
  std::optional<Policy> policy = {};  ///< absent: see config/policy.h
  Residence residence = Residence::rest;
  double min_gain = Circumstances::default_min_gain;
  double redirect_s = redirect_by_command_s;

  /// `iosig prepare` and `iosig finalize`, each with its start and the flushes of the journal. Measured:
  /// docs/performance.md.
  static constexpr double redirect_by_command_s = 0.008, settle_by_command_s = 0.008;
  /// A hint makes the link in the program's own open; the journal is not flushed.
  static constexpr double redirect_by_hint_s = 0.0005;
};

/// Returns the mount point of the description on whose file system `place` lies, or nullptr. Inspects the described
/// mount point above the path; if there is none, all that only this node sees, since a server may not respond.
[[nodiscard]] const MountPoint* described_at(const Place& place, const Storage& storage);

/// `place`: where the program will create the file; nullptr: unknown. Calls `ask` only if the choice depends on the
/// page cache. Fails with `bad_input` for a wrong $IOSIG_POLICY.
[[nodiscard]] Result<Circumstances> circumstances_at(const Place* place, const Signature& wanted,
                                                     const Storage& storage, const Asked& asked,
                                                     const std::function<PageCache()>& ask);

}  // namespace iosig
