// The bindings of paths to how their files are kept and read: which new files become containers and where their data
// go, and how files will be read. Reads the rules file that IOSIG_RULES names, and the globs in IOSIG_CONTAINERS.
// `iosig run` sets both variables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/signature.h"

namespace iosig::runtime {

struct Binding {
  /// This user's directories on the mount points that the data go to, best first; they exist. Empty: the data lie in
  /// the container.
  std::vector<std::string> targets;
};

/// Returns these directories for `signature`, whose container_targets must be set. Prints a message once if there are
/// fewer directories than targets. Returns none if one target is requested and `path` lies on the best mount point.
/// Fails as `infeasible` if no mount point admits the signature.
[[nodiscard]] Result<std::vector<std::string>> targets_for(const Signature& signature, const std::string& path);

/// Whether there are any rules or globs. Cheap: the answer is cached.
[[nodiscard]] bool has_bindings();
/// Whether a new file at the absolute `path` becomes a container.
[[nodiscard]] bool is_bound(const std::string& path);
/// Returns the binding of a new file at the absolute `path`, or nothing if it becomes an ordinary file. The first
/// matching rule applies, else the globs. If no mount point can be chosen, the data lie in the container, and the
/// reason is printed once.
[[nodiscard]] std::optional<Binding> binding_of(const std::string& path);

/// Whether a rule says how files will be read.
[[nodiscard]] bool has_declared_reads();
/// Returns how the file at the absolute `path` will be read: as the first matching rule says, or nothing.
[[nodiscard]] std::optional<DeclaredReads> declared_reads_of(const std::string& path);

}  // namespace iosig::runtime
