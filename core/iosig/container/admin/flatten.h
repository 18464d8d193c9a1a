// Copies a container's bytes into an ordinary file: beside the container (export) or in its place (flatten).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "iosig/container/read/container_view.h"

namespace iosig {

struct FlattenOptions {
  bool dry_run = false;                                ///< stop before the copy
  bool damaged = false;                                ///< write the bytes that are left; lost ones become holes
  std::function<void(std::int64_t)> on_progress = {};  ///< receives the number of bytes copied so far, holes included
  std::function<void(std::int64_t)> on_verified = {};  ///< the same for the data that are verified before
};

/// For a caller that has the container open itself and continues with the ordinary file.
struct FlattenOwnUse {
  std::vector<int> held = {};                          ///< descriptors by which the caller holds the container
  std::function<Result<void>(int)> on_draft = {};      ///< receives the new file, empty, open to read and write
  std::function<Result<void>()> before_exchange = {};  ///< called when the file is complete and no other process
                                                       ///< holds the container
};

/// Writes the content of `view`, which was opened from the droppings, to the new file `path`, atomically and durably.
/// Returns the file's size. Holes stay holes; the mode is that of the logical file. Fails with `usage` if `path`
/// exists, and with `bad_input` if bytes are lost, or data do not match their checksums, unless `damaged` is set: then
/// such data are copied as they are.
[[nodiscard]] Result<std::int64_t> export_container(ContainerView& view, const std::string& path,
                                                    const FlattenOptions& options = {});

/// **Deletes the container** after it has replaced it by an ordinary file with the same bytes, in one rename. Returns
/// the file's size. Fails with `infeasible`, and changes nothing, if another process has the container open or wrote to
/// it meanwhile; with `bad_input` if bytes are lost or were changed.
[[nodiscard]] Result<std::int64_t> flatten_container(const std::string& path, const FlattenOptions& options = {},
                                                     const FlattenOwnUse& own = {});

}  // namespace iosig
