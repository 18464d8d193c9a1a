#include "iosig/model/opener.h"

#include <fcntl.h>

#include <array>

namespace iosig {
namespace {

constexpr int creat_flags = O_CREAT | O_WRONLY | O_TRUNC;
using enum OpenInterface;

// The libraries' own bits: part of their binary interfaces and identical in every implementation.
constexpr int mpi_create = 1, mpi_excl = 64;
constexpr int h5f_trunc = 2, h5f_excl = 4;  // H5Fcreate with neither uses excl
constexpr int nc_noclobber = 4;
constexpr int nc_diskless = 8;  // no file, or one that the library creates on close

}  // namespace

std::span<const Opener> known_openers() {
  static const std::array openers = {
      Opener{.name = "open", .interface = open, .path = 0, .mode = 1, .permissions = 2},
      Opener{.name = "open64", .interface = open, .path = 0, .mode = 1, .permissions = 2},
      Opener{.name = "openat", .interface = open, .path = 1, .mode = 2, .dirfd = 0, .permissions = 3},
      Opener{.name = "openat64", .interface = open, .path = 1, .mode = 2, .dirfd = 0, .permissions = 3},
      Opener{.name = "creat", .interface = open, .path = 0, .mode_bits = creat_flags, .permissions = 1},
      Opener{.name = "creat64", .interface = open, .path = 0, .mode_bits = creat_flags, .permissions = 1},
      Opener{.name = "fopen", .interface = fopen, .path = 0, .mode = 1},
      Opener{.name = "fopen64", .interface = fopen, .path = 0, .mode = 1},
      Opener{.name = "freopen", .interface = fopen, .path = 0, .mode = 1},
      Opener{.name = "freopen64", .interface = fopen, .path = 0, .mode = 1},
      Opener{.name = "MPI_File_open",
             .interface = library,
             .path = 1,
             .mode = 2,
             .has_prefix = true,
             .creates_bit = mpi_create,
             .exclusive_bits = mpi_excl},
      Opener{.name = "H5Fcreate",
             .interface = library,
             .path = 0,
             .mode = 1,
             .creates_bit = h5f_trunc,
             .exclusive_bits = h5f_excl},
      Opener{.name = "H5Fopen", .interface = library, .path = 0, .mode = 1, .creates = false},
      Opener{.name = "nc_create",
             .interface = library,
             .path = 0,
             .mode = 1,
             .exclusive_bits = nc_noclobber | nc_diskless},
      Opener{.name = "nc_open", .interface = library, .path = 0, .mode = 1, .creates = false},
      Opener{.name = "ncmpi_create",
             .interface = library,
             .path = 1,
             .mode = 2,
             .has_prefix = true,
             .exclusive_bits = nc_noclobber},
      Opener{.name = "ncmpi_open", .interface = library, .path = 1, .mode = 2, .has_prefix = true, .creates = false},
  };
  return openers;
}

}  // namespace iosig
