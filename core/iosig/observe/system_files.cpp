#include "iosig/observe/system_files.h"

#include <algorithm>

#include "iosig/base/text.h"

namespace iosig::observe {
namespace {

constexpr std::string_view system_directories[] = {"/usr", "/lib",  "/lib32", "/lib64", "/bin", "/sbin",
                                                   "/etc", "/proc", "/sys",   "/dev",   "/run"};

/// Names in /dev/shm by which processes find memory that they share: MPICH, UCX, Open MPI 4 and 5, PSM 2, NCCL, glibc's
/// semaphores, PostgreSQL.
constexpr std::string_view shared_memory[] = {"mpich_shar_tmp", "ucx_shm_posix_", "vader_segment.", "sm_segment.",
                                              "psm2_shm.",      "nccl-",          "sem.",           "PostgreSQL."};

}  // namespace

bool is_of_system(std::string_view path) {
  if (constexpr std::string_view memory = "/dev/shm"; is_below(path, memory))
    return path.size() > memory.size() && std::ranges::any_of(shared_memory, [&](std::string_view start) {
             return path.substr(memory.size() + 1).starts_with(start);
           });
  return std::ranges::any_of(system_directories, [&](std::string_view directory) { return is_below(path, directory); });
}

}  // namespace iosig::observe
