// The functions that open files, with the positions of their arguments. Plain data, for every compiler's plugin and for
// `iosig check`.
//
// A new function is one more row in the table of opener.cpp.
#pragma once

#include <span>
#include <string>

namespace iosig {

/// The form of the mode argument; determines the matching hint of iosig.h.
enum class OpenInterface {
  open,     ///< open's flags
  fopen,    ///< fopen's mode string
  fstream,  ///< bits of std::ios_base::openmode
  library,  ///< a library's own bits; `creates_bit` and `exclusive_bits` translate them to open's flags
  unknown,  ///< a user's function: an int mode is open's, a char* fopen's; without a mode it creates the file
};

/// Arguments are counted from 0, including `this`; -1: none.
struct Opener {
  std::string name;  ///< "open"; a user's function may be qualified: "io::open_output"
  OpenInterface interface = OpenInterface::open;
  int path = 0;
  int mode = -1;
  int mode_bits = 0;            ///< always set, in addition to the argument
  int dirfd = -1;               ///< openat's directory
  int permissions = -1;         ///< of a file that is created; absent: 0666
  bool path_is_object = false;  ///< a std::string or filesystem::path by reference; its first word is the char*
  bool has_prefix = false;      ///< the path may begin with a file system prefix: "ufs:/scratch/file" (MPI-IO)
  // `library` only
  bool creates = true;     ///< false: never creates a file (H5Fopen)
  int creates_bit = 0;     ///< creates a file only if the mode has this bit (MPI_MODE_CREATE); 0: whenever `creates`
  int exclusive_bits = 0;  ///< with any of these it refuses an existing file and thus a link (H5F_ACC_EXCL)
};

/// Returns the C functions: POSIX, stdio, MPI-IO, HDF5, netCDF and PnetCDF. C++ streams are left to the compiler,
/// because their constructors have no single name.
[[nodiscard]] std::span<const Opener> known_openers();

}  // namespace iosig
