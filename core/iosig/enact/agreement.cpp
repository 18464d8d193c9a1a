#include "iosig/enact/agreement.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/enact/circumstances.h"
#include "iosig/enact/destination_name.h"
#include "iosig/enact/home.h"
#include "iosig/enact/journal_directory.h"
#include "iosig/enact/reserve.h"
#include "iosig/enact/user_directory.h"
#include "iosig/model/filesystem.h"

namespace iosig {
namespace {

long number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atol(text);
}

/// Returns the statfs::f_type of the file system; 0: it does not answer.
std::uint32_t kind_of_filesystem(const Fd& file) {
  struct statfs kind {};
  return ::fstatfs(file.get(), &kind) == 0 ? static_cast<std::uint32_t>(kind.f_type) : 0;
}

bool is_shared_kind(std::uint32_t kind) {
  const FilesystemType* const type = find_filesystem(kind);
  return type != nullptr && type->is.is_shared;
}

bool is_seen_by_other_nodes(const Place& place, const Storage& storage) {
  if (const MountPoint* described = described_at(place, storage)) return described->visibility == Visibility::global;
  return is_on_shared_file_system(place.directory);
}

/// Returns an id that is the same in every process of this node, so only one of them can write the entry.
std::string node_copy_id(std::string_view first_id) {
  return fmt::format("{:016x}", fnv1a(fmt::format("{}@{}", first_id, host_name())));
}

/// Whether a file can be created at the destination on this node.
bool has_directory_of(const DestinationName& parsed) {
  const auto directory = open_user_directory(parsed.mount_point, IfMissing::refuse);
  return directory && (!parsed.has_directory || ::faccessat(directory->fd.get(), parsed.id.c_str(), F_OK, 0) == 0);
}

bool is_described_as_global(const std::string& mount_point, const Storage& storage) {
  const MountPoint* described = storage.find_mount_point(mount_point);
  return described != nullptr && described->visibility == Visibility::global;
}

/// Whether all nodes of this job must open the same file.
bool must_be_one_file(const Signature& declared) {
  return declared.visibility != Visibility::local && !job_on_several_nodes().empty();
}

/// Writes the entry for this node's data behind the link.
Result<void> record_node_copy(const Place& place, const std::string& target, const DestinationName& parsed,
                              const UserDirectory& directory, const Signature& declared) {
  auto entry = new_journal_entry(RedirectedBy::runtime);
  if (!entry) return pass_on(entry.error());
  entry->id = node_copy_id(parsed.id);
  entry->path = place.path();
  record_home(*entry, place);
  entry->destination = target;
  entry->mount_point = parsed.mount_point;
  entry->filesystem_id = filesystem_id(directory.fd);
  entry->signature = declared;
  if (is_recorded(entry->id)) return {};
  // Without free space the file is created here nevertheless: the path is already decided.
  MountPoint mount;
  mount.path = parsed.mount_point;
  const auto room = reserve(directory, mount, declared.total_bytes);
  if (auto recorded = record(*entry, /*durable=*/false); !recorded && !is_recorded(entry->id)) return recorded;
  if (room) room->keep_for(*entry);
  return {};
}

}  // namespace

bool is_on_shared_file_system(const Fd& file) {
  const std::uint32_t kind = kind_of_filesystem(file);
  return kind == FUSE_SUPER_MAGIC || is_shared_kind(kind);
}

bool is_seen_by_nodes(const Fd& file) { return is_shared_kind(kind_of_filesystem(file)); }

std::string job_on_several_nodes() {
  struct Sign {
    const char *all, *here;
  };
  for (const Sign& sign : {Sign{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}, {"PMI_SIZE", "MPI_LOCALNRANKS"}})
    if (const long all = number_in(sign.all), here = number_in(sign.here); all > 0 && here > 0)
      return all > here ? fmt::format("{}={}, {}={}", sign.all, all, sign.here, here) : "";
  for (const char* nodes : {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES"})
    if (const long count = number_in(nodes); count > 0) return count > 1 ? fmt::format("{}={}", nodes, count) : "";
  return {};
}

Agreed agree(const Signature& declared, const Place& place, const Storage& storage) {
  Agreed agreed{declared, {}};
  if (declared.visibility) return agreed;
  const std::string job = job_on_several_nodes();
  if (job.empty() || !is_seen_by_other_nodes(place, storage)) return agreed;
  agreed.signature.visibility = Visibility::global;
  agreed.why = fmt::format(
      "global, because neither local nor global is given, other nodes see '{}', and the job runs on several ({})",
      printable(place.directory_path), job);
  return agreed;
}

/// Example: rank 0 on node A makes the link `scratch.tmp` to A's /nvme. A rank on node B opens the path and finds the
/// link. Its stream is local, so B gets data of its own behind the same link: a directory of the same name on B's /nvme
/// (4), and a journal entry (5).
///
/// 1. Nothing to do: no link of iosig, or storage that all nodes see.
/// 2. Nothing to do: the link was made on this node, and its directory is here.
/// 3. One file for several nodes. Its directory must be here, otherwise refuse: the ranks would write different files.
/// 4. Create the directory. Killed after it: the next open continues with 5.
/// 5. Journal the data, unless the entry of the link itself is theirs.
Result<bool> join(const Place& place, const Signature& declared, const Storage& storage) {
  const auto target = link_target(place);
  const auto parsed = target ? parse_destination(*target) : std::nullopt;
  if (!parsed || is_described_as_global(parsed->mount_point, storage)) return false;
  const bool has_directory = has_directory_of(*parsed);
  const auto first = recorded_entry(parsed->id);
  const bool made_here = first && first->host == host_name();
  if (made_here && has_directory) return false;
  if (!made_here && must_be_one_file(declared)) {
    if (has_directory) return false;
    return fail(ErrorKind::infeasible,
                "'{}' leads to '{}', which this node lacks, and the job runs on several nodes; declare the stream "
                "global or local, or prepare it on storage that all nodes see",
                printable(place.path()), printable(*target));
  }
  const auto directory = open_user_directory(parsed->mount_point);
  if (!directory) return pass_on(directory.error());
  if (parsed->has_directory)
    if (auto made = make_destination(*directory, parsed->id, parsed->name); !made) return pass_on(made.error());
  if (made_here) return true;  // it was lost in a power failure, or removed
  if (auto recorded = record_node_copy(place, *target, *parsed, *directory, declared); !recorded)
    return pass_on(recorded.error());
  return true;
}

bool is_of_another_node(const JournalEntry& entry) {
  if (entry.host == host_name()) return false;
  const auto parsed = parse_destination(entry.destination);
  return parsed && (parsed->id != entry.id || is_recorded(node_copy_id(parsed->id)));
}

}  // namespace iosig
