// The functions that Recorder traces, with what their arguments are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "iosig/trace/calls.h"

namespace iosig::trace {

/// Numbers of arguments; -1: there is none.
struct RecorderFunction {
  std::string_view name;
  Call call = Call::none;
  int path = 0, size = -1, offset = -1;
  int second = -1;  ///< the second path
  int factor = -1;  ///< by which the size is multiplied: a number, or the name of an MPI type
  int file = -1;    ///< of MPI_File_open: the file's id, which stands for the path in other calls
};

/// Null: no call on files that IOSIG knows.
[[nodiscard]] const RecorderFunction* recorder_function(std::string_view name);
/// Of a basic type of C or Fortran; nothing: its size is not known.
[[nodiscard]] std::optional<std::int64_t> bytes_of_mpi_type(std::string_view name);
/// The flags of open(2) that a mode of fopen(3) stands for.
[[nodiscard]] std::int64_t flags_of_mode(std::string_view mode);

}  // namespace iosig::trace
