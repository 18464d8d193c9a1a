// The calls that open files: which functions they are, and where their arguments stand. Plain data, for every
// compiler's plugin and for `iosig check`.
//
// A new function is one more row of the table in opener.cpp.
#pragma once

#include <span>
#include <string>

namespace iosig {

/// How the mode argument is written, and with it which hint of iosig.h fits.
enum class OpenInterface {
  open,     ///< open's flags
  fopen,    ///< fopen's text
  fstream,  ///< bits of std::ios_base::openmode
  library,  ///< bits of a library's own: `creates_bit` and `exclusive_bit` translate them into open's flags
  unknown,  ///< a function of the user's: an int mode is open's, a char* fopen's; without a mode it creates the file
};

/// Arguments are counted from 0, `this` included; -1: there is none.
struct Opener {
  std::string name;  ///< "open"; a user's may be qualified: "io::open_output"
  OpenInterface interface = OpenInterface::open;
  int path = 0;
  int mode = -1;
  int mode_bits = 0;            ///< always set, beside what the argument says
  int dirfd = -1;               ///< openat's directory
  int permissions = -1;         ///< of a file that is created; absent: 0666
  bool path_is_object = false;  ///< a std::string or filesystem::path by reference; its first word is the char*
  bool has_prefix = false;      ///< the path may begin with a file system's name: "ufs:/scratch/file" (MPI-IO)
  // `library` only
  bool creates = true;     ///< false: it never makes a file (H5Fopen)
  int creates_bit = 0;     ///< makes a file only when the mode has this bit (MPI_MODE_CREATE); 0: whenever `creates`
  int exclusive_bits = 0;  ///< with any of these it refuses a file that exists, and so a link (H5F_ACC_EXCL)
};

/// Functions of C: POSIX, stdio, MPI-IO, HDF5, netCDF and PnetCDF. The streams of C++ are a compiler's to recognise:
/// their constructors have no one name.
[[nodiscard]] std::span<const Opener> known_openers();

}  // namespace iosig
