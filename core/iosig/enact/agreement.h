// What the processes of a job agree on about a file that all of them open.
//
// Those that see the same path meet at the link: it is made in one step, so one of them wins and the others follow
// (enact/redirect.h). Here is what nodes need beyond that:
//
//   local streams     the link is one, but leads to a directory that each node has of its own; whoever comes first on a
//   node
//                     makes it there, and an entry for this node's data: a twin
//   other streams     in a job on several nodes, all nodes must reach the data: the stream counts as global
#pragma once

#include "iosig/enact/place.h"
#include "iosig/format/journal.h"
#include "iosig/model/storage.h"

namespace iosig {

/// By what it is known that this process belongs to a job on several nodes, e.g. "SLURM_STEP_NUM_NODES=2"; empty: it
/// does not, or nobody says so. Asked of Open MPI, Hydra (MPICH, Intel MPI) and Slurm, in this order.
[[nodiscard]] std::string job_on_several_nodes();

/// Whether the open file or directory lies on a file system that other nodes, or a FUSE daemon, may change.
[[nodiscard]] bool is_on_shared_file_system(const Fd& file);

/// The signature to choose with.
struct Agreed {
  Signature signature;
  std::string why;  ///< empty: as declared
};

/// A stream that says neither local nor global, at a place that other nodes of its job see: then it is global.
/// The description tells which places are seen by others, and for those it does not know, the kind of file system.
[[nodiscard]] Agreed agree(const Signature& declared, const Place& place, const Storage& storage);

/// For the dangling link at `place`: makes what it leads to possible on this node. Returns whether it did something;
/// the link of somebody else's program, or one that leads to where the file may be created, needs nothing.
/// `infeasible`: it leads to a directory of another node, and the stream is not local.
[[nodiscard]] Result<bool> join(const Place& place, const Signature& declared, const Storage& storage);

/// Whether what stands at the entry's destination on this node belongs to another entry: its twin, or that whose twin
/// it is.
[[nodiscard]] bool is_of_another_node(const JournalEntry& entry);

}  // namespace iosig
