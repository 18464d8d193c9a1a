// The program's MPI library, looked up at run time without its header when it is first needed. Handles are passed
// through unchanged. The few calls that are made here are the same in Open MPI and MPICH, except for the handle
// MPI_BYTE.
#pragma once

#include "preload/hooks/libc_types.h"

namespace iosig::mpiio {

using Handle = preload::MpiHandle;

inline constexpr int mode_write_only = 4;  ///< MPI_MODE_WRONLY, the same in both
inline constexpr int success = 0;          ///< MPI_SUCCESS

struct Library {
  int (*comm_size)(Handle, int*) = nullptr;
  int (*comm_rank)(Handle, int*) = nullptr;
  int (*broadcast)(void*, int, Handle, int, Handle) = nullptr;
  int (*error_class)(int, int*) = nullptr;
  int (*type_size)(Handle, int*) = nullptr;
  Handle byte = 0;  ///< MPI_BYTE

  /// Whether the library is a known one. No call is made to any other.
  [[nodiscard]] bool is_known() const { return byte != 0 && comm_size && comm_rank && broadcast; }
};
[[nodiscard]] const Library& library();

/// Returns the next definition of an intercepted function: that of another preloaded library, or MPI's own.
[[nodiscard]] void* function_behind(const char* name);

}  // namespace iosig::mpiio
