// A container's bytes as an ordinary file.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "iosig/container/read/container_view.h"

namespace iosig {

struct FlattenOptions {
  bool dry_run = false;                                ///< everything but the copy and what follows it
  bool damaged = false;                                ///< what is lost becomes a hole, and what is there is written
  std::function<void(std::int64_t)> on_progress = {};  ///< bytes of the file that are copied, holes included
};

/// How a caller that has the container open itself goes on with the ordinary file.
struct FlattenOwnUse {
  std::vector<int> held = {};                          ///< descriptors by which the caller holds the container
  std::function<Result<void>(int)> on_draft = {};      ///< the new file, still empty, open to read and write
  std::function<Result<void>()> before_exchange = {};  ///< nobody else has the container; the file is complete
};

/// Writes all that `view`, opened from the droppings, shows into `path`, where nothing may be: complete and synced, or
/// not at all. Holes stay holes. The file gets the logical file's permissions. Bytes that a dropping should hold and
/// does not: none, unless what is damaged is asked for. Fails as `bad_input` where something is lost otherwise.
[[nodiscard]] Result<std::int64_t> export_container(ContainerView& view, const std::string& path,
                                                    const FlattenOptions& options = {});

/// Puts an ordinary file with the same bytes in the container's place, in one step, and removes the container: the
/// file's size. Fails as `infeasible` while somebody has it open, and when somebody wrote to it meanwhile.
[[nodiscard]] Result<std::int64_t> flatten_container(const std::string& path, const FlattenOptions& options = {},
                                                     const FlattenOwnUse& own = {});

}  // namespace iosig
