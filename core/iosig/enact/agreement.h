// Agreement among the processes of a job about a file that all of them open.
//
// Processes that see the same path meet at the link: its creation is atomic, so one process wins and the others follow
// (enact/redirect.h). Nodes need more than that:
//
//   local streams     all nodes see one link, but it leads to a directory that each node has of its own. The first
//                     process of a node creates it there, and an entry for this node's data: the per-node copy
//   other streams     in a job on several nodes, all nodes must reach the data: the stream counts as global
#pragma once

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Returns the evidence that this process belongs to a job on several nodes, e.g. "SLURM_STEP_NUM_NODES=2"; empty if
/// there is none. Checks Open MPI, Hydra (MPICH, Intel MPI) and Slurm, in this order.
[[nodiscard]] std::string job_on_several_nodes();

/// Whether the open file or directory lies on a file system that other nodes, or a FUSE daemon, may change.
[[nodiscard]] bool is_on_shared_file_system(const Fd& file);
/// Whether it lies on one that is known to be seen by other nodes (NFS, Lustre, ...; FUSE can be of any kind).
[[nodiscard]] bool is_seen_by_nodes(const Fd& file);

/// The signature that a mount point is chosen with.
struct Agreed {
  Signature signature;
  std::string why;  ///< empty: as declared
};

/// Makes a stream global if it is declared neither local nor global and `place` is visible to other nodes of its job.
/// The storage description tells which places other nodes see; for unknown places, the type of the file system does.
[[nodiscard]] Agreed agree(const Signature& declared, const Place& place, const Storage& storage);

/// Prepares the target of the dangling link at `place` on this node. Returns whether it did anything; a link that
/// another program made, or whose target can already be created, needs nothing. `infeasible`: the link leads to a
/// directory of another node, and the stream is not local.
[[nodiscard]] Result<bool> join(const Place& place, const Signature& declared, const Storage& storage);

/// Whether the data at the entry's destination on this node belong to another entry: its per-node copy, or the entry
/// that it is a per-node copy of.
[[nodiscard]] bool is_of_another_node(const JournalEntry& entry);

}  // namespace iosig
