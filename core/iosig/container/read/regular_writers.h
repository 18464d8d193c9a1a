// The merged index of many closed writers, each of which wrote at one stride, in a fraction of the time and memory of
// the general way (container/read/content, container/read/merge_indices).
//
// Example: 60,000 processes, one after the other, write 16 times 64 bytes at a stride of 60,000 x 64. Their records are
// read in parts of 1 MiB. Of each writer a few numbers are kept, and consecutive writers whose numbers grow evenly
// become one nest over the writers.
#pragma once

#include <optional>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"

namespace iosig {

/// Returns the merged index, without the state of a snapshot, if the general way would find the same and no problem:
/// every writer was closed and has a record with its index; no record is damaged; there is nothing in the container but
/// these writers; each has one frame, of writes of one length at one stride, and no mark; its data have their size.
/// Either each writer ended before the next began, or all write at one regular arrangement without an overlap.
/// Nothing otherwise, for fewer than 128 writers, and after any failure: the caller goes the general way.
[[nodiscard]] std::optional<IndexSnapshot> merge_regular_writers(const ContainerDirectory& directory,
                                                                 const ContainerDirectory::Listing& listing);

}  // namespace iosig
