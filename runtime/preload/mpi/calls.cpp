// The intercepted MPI calls. The rest of MPI-IO arrives as the MPI library's own calls of libc (runtime/preload): file
// views, derived datatypes, collective buffering and data sieving stay in the MPI library.
//
// MPI_File_open: the first rank reads the index of a container and broadcasts it to the others. Opening a container
// with thousands of ranks therefore loads the file system as little as opening it with one. MPI_File_sync: makes the
// writes that other nodes have synced visible.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "host/reentrancy_guard.h"
#include "host/table_section.h"
#include "preload/files/open_file.h"
#include "preload/hooks/hook.h"
#include "preload/mpi/ahead.h"
#include "preload/mpi/library.h"

namespace iosig::mpiio {
namespace {

using OpenCall = int (*)(Handle, const char*, int, Handle, Handle*);
using SyncCall = int (*)(Handle);

constexpr int cannot = 16;  ///< MPI_ERR_OTHER, or a similar error class, depending on the library
constexpr std::uint64_t max_index_bytes = 1u << 30, max_at_once = 1u << 20;

/// Set during an intercepted call. A nested call, through PMPI or another preloaded library, is passed on unchanged.
constinit thread_local bool is_in_mpi_call __attribute__((tls_model("initial-exec"))) = false;

/// Memory for the broadcast index; bytes() is empty if there is none. A rank without memory still takes part in the
/// broadcast.
class Room {
 public:
  explicit Room(std::size_t bytes) : bytes_(bytes) {
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped != MAP_FAILED) memory_ = static_cast<std::byte*>(mapped);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  ~Room() {
    if (memory_ != nullptr) ::munmap(memory_, bytes_);
  }
  [[nodiscard]] std::span<std::byte> bytes() const { return {memory_, memory_ == nullptr ? 0 : bytes_}; }

 private:
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

/// Broadcasts bytes from the first rank to all others. `bytes` is null in a rank without memory, which discards them.
bool broadcast(std::byte* bytes, std::uint64_t length, Handle communicator) {
  IOSIG_TABLE static std::byte dropped[max_at_once];
  const Library& mpi = library();
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t now = std::min(max_at_once, length - done);
    if (mpi.broadcast(bytes == nullptr ? dropped : bytes + done, static_cast<int>(now), mpi.byte, 0, communicator) !=
        success)
      return false;
    done += now;
  }
  return true;
}

int open(OpenCall behind, Handle communicator, const char* path, int mode, Handle info, Handle* file) {
  if (behind == nullptr) return cannot;
  const Library& mpi = library();
  if (is_in_mpi_call || !mpi.is_known()) return behind(communicator, path, mode, info, file);
  const runtime::CancellationOff uncancelled;
  const runtime::ReentrancyGuard inside(is_in_mpi_call);
  int ranks = 0, rank = 0;
  const bool is_shared =
      mpi.comm_size(communicator, &ranks) == success && ranks > 1 && mpi.comm_rank(communicator, &rank) == success;
  if (!is_shared) return behind(communicator, path, mode, info, file);

  Ahead ahead;
  std::span<const std::byte> index;
  if (rank == 0 && (mode & mode_write_only) == 0 && path != nullptr) index = ahead.read(path);
  if (index.size() > max_index_bytes) index = {};
  std::uint64_t length = index.size();
  // From here on all ranks make the same collective calls, even if some of them fail.
  if (!broadcast(reinterpret_cast<std::byte*>(&length), sizeof length, communicator) || length == 0)
    return behind(communicator, path, mode, info, file);
  const Room room(length);
  std::copy(index.begin(), index.end(), room.bytes().begin());
  if (broadcast(room.bytes().data(), length, communicator) && rank != 0) ahead.learn(path, room.bytes());
  return behind(communicator, path, mode, info, file);
}

int sync(SyncCall behind, Handle file) {
  if (behind == nullptr) return cannot;
  const int status = behind(file);
  if (!is_in_mpi_call) preload::refresh_from_other_nodes();
  return status;
}

}  // namespace
}  // namespace iosig::mpiio

using namespace iosig::preload;

#define BEHIND(Call, name) \
  static const auto behind = reinterpret_cast<iosig::mpiio::Call>(iosig::mpiio::function_behind(name))

int hook::MPI_File_open(MpiHandle communicator, const char* path, int mode, MpiHandle info, MpiHandle* file) {
  BEHIND(OpenCall, "MPI_File_open");
  return iosig::mpiio::open(behind, communicator, path, mode, info, file);
}

int hook::PMPI_File_open(MpiHandle communicator, const char* path, int mode, MpiHandle info, MpiHandle* file) {
  BEHIND(OpenCall, "PMPI_File_open");
  return iosig::mpiio::open(behind, communicator, path, mode, info, file);
}

int hook::MPI_File_sync(MpiHandle file) {
  BEHIND(SyncCall, "MPI_File_sync");
  return iosig::mpiio::sync(behind, file);
}

int hook::PMPI_File_sync(MpiHandle file) {
  BEHIND(SyncCall, "PMPI_File_sync");
  return iosig::mpiio::sync(behind, file);
}
