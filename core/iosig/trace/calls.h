// The calls that a trace knows, by number, name and layer (calls.inc).
#pragma once

#include <cstdint>
#include <string_view>

namespace iosig::trace {

/// The layer of the I/O software to which a call belongs, from the program down.
enum class Layer : std::uint8_t { mpi_io, stdio, posix };
inline constexpr std::string_view layer_names[] = {"mpi-io", "stdio", "posix"};

/// Whether a call moves bytes, and which way; its result is their number then.
enum class Moves : std::uint8_t { nothing, reads, writes };

/// Stands in trace files as its number.
enum class Call : std::uint16_t {
  none = 0,
#define IOSIG_CALL(number, name, layer, moves) name = (number),
#include "iosig/trace/calls.inc"
#undef IOSIG_CALL
};
/// Greater than every call's number.
inline constexpr std::uint16_t call_limit = 400;

/// Returns the call's name; "" of a number that no call has.
[[nodiscard]] std::string_view name_of(Call call);
/// Returns the call of this name; Call::none if there is none.
[[nodiscard]] Call call_of(std::string_view name);
/// Returns the layer of a call that has a name.
[[nodiscard]] Layer layer_of(Call call);
[[nodiscard]] Moves moves_of(Call call);
/// Returns what stands for the reading side of a copy in the kernel (`sendfile` and its like); Call::none of others.
[[nodiscard]] constexpr Call source_of(Call copy) {
  return copy == Call::sendfile          ? Call::sendfile_source
         : copy == Call::copy_file_range ? Call::copy_file_range_source
         : copy == Call::splice          ? Call::splice_source
                                         : Call::none;
}
/// Whether the length in a slot is the id of a second name: the new name of `rename` and `link`, what `symlink` leads
/// to.
[[nodiscard]] bool has_second_path(Call call);

/// Calls that say which path an open file has (docs/formats/trace.md): bit (call % 64) is set for each.
inline constexpr std::uint64_t naming_calls = [] {
  std::uint64_t set = 0;
  for (const Call call : {Call::open, Call::inherited, Call::fopen, Call::freopen, Call::MPI_File_open})
    set |= std::uint64_t{1} << static_cast<unsigned>(call) % 64;
  return set;
}();

}  // namespace iosig::trace
