// The indices of all writers of a container as one, in the two forms that readers look things up in.
//
// Pure: plain data in and out.
#pragma once

#include "iosig/base/result.h"
#include "iosig/container/read/content.h"
#include "iosig/container/read/extent_map.h"
#include "iosig/model/pattern.h"

namespace iosig {

inline constexpr std::int64_t hole_id = -1;  ///< the writer of what a truncation or a punch made a hole

/// All writes of (logical, length, physical, id), those that overlap in the order of their numbers; marks that make
/// holes are writes of hole_id, up to byte 2^63 - 1 for truncations. Fails as merge_patterns(), and as `bad_input` for
/// entries, which are no pattern.
[[nodiscard]] Result<Pattern> merged_index(const ContainerContent& content);

/// One extent after the other, as PLFS 2.x does: every write in order of its number on top of those before.
/// Fails as `infeasible` above 2^28 writes.
[[nodiscard]] Result<ExtentMap> extents_of(const ContainerContent& content);

}  // namespace iosig
