// Which new files of a program become containers, and where their data go: by the rules file that IOSIG_RULES names,
// and by the globs of IOSIG_CONTAINERS. `iosig run` sets both.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/signature.h"

namespace iosig::runtime {

struct Binding {
  /// This user's directories on the mount points that the data go to, best first, made; none: they lie in the
  /// container.
  std::vector<std::string> targets;
};

/// The same directories for `signature`, whose container_targets is set; that there are fewer is said once. None if one
/// is asked for and the best mount point is that of `path`. `infeasible`: no mount point admits it.
[[nodiscard]] Result<std::vector<std::string>> targets_for(const Signature& signature, const std::string& path);

/// Whether rules or globs are given at all: costs nothing.
[[nodiscard]] bool has_bindings();
/// Whether a new file at `path`, absolute, is a container.
[[nodiscard]] bool is_bound(const std::string& path);
/// Of a new file at `path`, absolute; nothing: it is an ordinary one. The first rule that matches counts, then the
/// globs. Where no mount point can be chosen the data lie in the container, and why is said once.
[[nodiscard]] std::optional<Binding> binding_of(const std::string& path);

}  // namespace iosig::runtime
