#include "preload/trace/mpi_files.h"

#include <array>
#include <atomic>

#include "host/table_section.h"
#include "preload/mpi/library.h"
#include "preload/trace/thread_part.h"

namespace iosig::preload::trace {
namespace {

struct OpenMpiFile {
  std::atomic<MpiHandle> handle{0};  ///< 0: unused
  std::atomic<std::uint32_t> id{0};
};
/// More files than this open at once: the rest is not recorded at this layer.
constexpr std::size_t max_files = 4096;
IOSIG_TABLE constinit std::array<OpenMpiFile, max_files> files{};

std::size_t place_of(MpiHandle file) { return (file >> 4 ^ file >> 12 ^ file) % max_files; }

OpenMpiFile* find(MpiHandle file) {
  for (std::size_t n = 0; n < 64; ++n) {
    OpenMpiFile& each = files[(place_of(file) + n) % max_files];
    if (each.handle.load(std::memory_order_acquire) == file) return &each;
  }
  return nullptr;
}

}  // namespace

std::uint32_t id_of_file(MpiHandle file) {
  const OpenMpiFile* const known = file == 0 ? nullptr : find(file);
  return known == nullptr ? 0 : known->id.load(std::memory_order_relaxed);
}

std::uint32_t file_opened(MpiHandle file) {
  const std::uint32_t id = next_file_id();
  for (std::size_t n = 0; file != 0 && n < 64; ++n) {
    OpenMpiFile& each = files[(place_of(file) + n) % max_files];
    MpiHandle unused = 0;
    if (!each.handle.compare_exchange_strong(unused, file)) continue;
    each.id.store(id, std::memory_order_relaxed);
    break;
  }
  return id;
}

void file_closed(MpiHandle file) {
  if (OpenMpiFile* const known = file == 0 ? nullptr : find(file); known != nullptr)
    known->handle.store(0, std::memory_order_release);
}

int class_of(int failure) {
  const auto find = mpiio::library().error_class;
  int found = failure;
  return failure == 0 || find == nullptr || find(failure, &found) != mpiio::success ? failure : found;
}

std::int64_t processes_of(MpiHandle communicator) {
  const auto size_of = mpiio::library().comm_size;
  int processes = 0;
  if (size_of == nullptr || size_of(communicator, &processes) != mpiio::success) return iosig::trace::no_length;
  return processes;
}

std::int64_t bytes_of(long long count, MpiHandle type) {
  const auto size_of = mpiio::library().type_size;
  int bytes = 0;
  if (size_of == nullptr || size_of(type, &bytes) != mpiio::success) return iosig::trace::no_length;
  return count * bytes;
}

}  // namespace iosig::preload::trace
