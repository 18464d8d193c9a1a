#include <doctest/doctest.h>

#include "iosig/observe/system_files.h"

using iosig::observe::is_of_system;

TEST_CASE("files in memory are the job's, except the memory that libraries share by name") {
  for (const char* path : {"/dev/shm", "/dev/shm/data", "/dev/shm/job/ucx_shm_posix_1", "/data/sem.1", "/usrlocal/x"})
    CHECK(!is_of_system(path));
  for (const char* path : {"/dev/shm/ucx_shm_posix_2352eae5", "/dev/shm/mpich_shar_tmpkzZDlG", "/dev/shm/sem.lock",
                           "/dev/shm/vader_segment.vm.0.1", "/dev/null", "/usr/lib/x"})
    CHECK(is_of_system(path));
}
