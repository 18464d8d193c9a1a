// The calls that a trace knows (calls.inc). Code that treats all calls of a kind alike asks for the kind, not for
// names, so that it also handles calls that are added later.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace iosig::trace {

/// The layer of the I/O software to which a call belongs, from the program down.
enum class Layer : std::uint8_t { mpi_io, stdio, posix };
inline constexpr std::string_view layer_names[] = {"mpi-io", "stdio", "posix"};

/// The effect of a call. A call of MPI-IO or stdio has a kind only if it opens, closes, reads or writes; its other
/// effects appear as the POSIX calls that it makes.
enum class CallKind : std::uint8_t {
  other,
  open,   ///< its length is flags of open(2), or the mode of MPI
  close,  ///< of a descriptor, a stream or a file of MPI
  duplicate,
  read,        ///< moves as many bytes as its result
  write,       ///< likewise
  begin_read,  ///< asynchronous: of `length` bytes if it succeeds
  begin_write,
  begin_list,  ///< of operations that have no records of their own
  seek,
  sync,           ///< makes the whole file durable
  begin_sync,     ///< asynchronous
  truncate,       ///< to `length` bytes
  allocate,       ///< `length` bytes from `offset` on
  map,            ///< mmap(2)
  look_up,        ///< asks by its name whether a file is there
  set_attribute,  ///< of a file that keeps its contents and names
  link,
  rename,
  unlink,
  make_directory,
  remove_directory,
  make_name  ///< of something else than a regular file
};

/// How a call meets other calls.
enum class CallManner : std::uint8_t {
  plain,
  at_file_offset,  ///< begins at the file offset of the descriptor, and moves it by its result
  collective,      ///< of MPI: each rank calls it, and need not wait for the others
  waits_for_all    ///< collective, and may wait for the others
};

/// Whether a call moves bytes, and which way; its result is their number then.
enum class Moves : std::uint8_t { nothing, reads, writes };

/// Stands in trace files as its number.
enum class Call : std::uint16_t {
  none = 0,
#define IOSIG_CALL(number, name, layer, kind, manner) name = (number),
#include "iosig/trace/calls.inc"
#undef IOSIG_CALL
};
/// Greater than every call's number.
inline constexpr std::uint16_t call_limit = 400;

inline constexpr std::array<CallKind, call_limit> call_kinds = [] {
  std::array<CallKind, call_limit> kinds{};
#define IOSIG_CALL(number, name, layer, kind, manner) kinds[number] = CallKind::kind;
#include "iosig/trace/calls.inc"
#undef IOSIG_CALL
  return kinds;
}();
inline constexpr std::array<CallManner, call_limit> call_manners = [] {
  std::array<CallManner, call_limit> manners{};
#define IOSIG_CALL(number, name, layer, kind, manner) manners[number] = CallManner::manner;
#include "iosig/trace/calls.inc"
#undef IOSIG_CALL
  return manners;
}();

/// Returns the kind of a call below call_limit.
[[nodiscard]] constexpr CallKind call_kind_of(Call call) { return call_kinds[static_cast<std::uint16_t>(call)]; }
/// Returns the manner of a call below call_limit.
[[nodiscard]] constexpr CallManner call_manner_of(Call call) { return call_manners[static_cast<std::uint16_t>(call)]; }
[[nodiscard]] constexpr Moves moves_of(Call call) {
  const CallKind kind = call_kind_of(call);
  return kind == CallKind::read ? Moves::reads : kind == CallKind::write ? Moves::writes : Moves::nothing;
}

/// Returns the call's name; "" of a number that no call has.
[[nodiscard]] std::string_view name_of(Call call);
/// Returns the call of this name; Call::none if there is none.
[[nodiscard]] Call call_of(std::string_view name);
/// Returns the layer of a call that has a name.
[[nodiscard]] Layer layer_of(Call call);
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
  for (unsigned number = 0; number < call_limit; ++number)
    if (call_kinds[number] == CallKind::open || static_cast<Call>(number) == Call::inherited)
      set |= std::uint64_t{1} << number % 64;
  return set;
}();

}  // namespace iosig::trace
