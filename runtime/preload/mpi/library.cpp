#include "preload/mpi/library.h"

#include <dlfcn.h>

#include "preload/hooks/real.h"

namespace iosig::mpiio {
namespace {

constexpr Handle mpich_byte = 0x4c00010d;
constexpr const char* names_of_libraries[] = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"};

Library find_library() {
  Library found;
  found.comm_size = reinterpret_cast<decltype(found.comm_size)>(function_behind("PMPI_Comm_size"));
  found.comm_rank = reinterpret_cast<decltype(found.comm_rank)>(function_behind("PMPI_Comm_rank"));
  found.broadcast = reinterpret_cast<decltype(found.broadcast)>(function_behind("PMPI_Bcast"));
  found.error_class = reinterpret_cast<decltype(found.error_class)>(function_behind("PMPI_Error_class"));
  found.type_size = reinterpret_cast<decltype(found.type_size)>(function_behind("PMPI_Type_size"));
  if (void* const open_mpis = function_behind("ompi_mpi_byte"))
    found.byte = reinterpret_cast<Handle>(open_mpis);
  else if (function_behind("MPIR_Dup_fn") != nullptr)
    found.byte = mpich_byte;
  return found;
}

}  // namespace

void* function_behind(const char* name) {
  if (void* const found = ::dlsym(RTLD_NEXT, name)) return found;
  for (const char* library : names_of_libraries)
    if (void* const found = preload::find_in_late_library(library, name)) return found;
  return nullptr;
}

const Library& library() {
  static const Library found = find_library();
  return found;
}

}  // namespace iosig::mpiio
