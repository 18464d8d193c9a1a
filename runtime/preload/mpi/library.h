// The MPI library of the program, whichever it is: found when it is first needed, without its header. Handles are
// passed through as they come; the few calls that are made here are the same for Open MPI and MPICH but for one handle.
#pragma once

#include <cstdint>

namespace iosig::mpiio {

/// A communicator, file or info of any MPI library: a pointer in Open MPI, an int in MPICH.
using Handle = std::uintptr_t;

inline constexpr int mode_write_only = 4;  ///< MPI_MODE_WRONLY, the same in all
inline constexpr int success = 0;          ///< MPI_SUCCESS

struct Library {
  int (*comm_size)(Handle, int*) = nullptr;
  int (*comm_rank)(Handle, int*) = nullptr;
  int (*broadcast)(void*, int, Handle, int, Handle) = nullptr;
  Handle byte = 0;  ///< MPI_BYTE

  /// Of a library that is not known, nothing is asked.
  [[nodiscard]] bool is_known() const { return byte != 0 && comm_size && comm_rank && broadcast; }
};
[[nodiscard]] const Library& library();

/// The function that stands behind ours of the same name: that of another library that is preloaded, or MPI's own.
[[nodiscard]] void* function_behind(const char* name);

}  // namespace iosig::mpiio
