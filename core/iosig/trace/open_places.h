// Where programs open their files, from the facts that the recorder notes at opens (docs/formats/trace.md): return
// addresses, as addresses in the files of programs and libraries.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace iosig::trace {

/// A program or library as it was when it was loaded.
struct CodeFile {
  std::string path;  ///< empty: the process's program
  std::uint64_t bytes = 0, modified_ns = 0;
  bool operator==(const CodeFile&) const = default;
};

/// An address in a file's own counting, as its symbol and line tables have it. It is inside the instruction that
/// called.
struct CodeAddress {
  std::uint32_t file = 0;  ///< index in OpenPlaces::files
  std::uint64_t address = 0;
  bool operator==(const CodeAddress&) const = default;
};

struct OpenPlace {
  std::uint32_t path = 0;            ///< id of the opened path in the process
  std::vector<CodeAddress> callers;  ///< innermost first: functions of the program and of its own libraries
  bool operator==(const OpenPlace&) const = default;
};

/// The places of a process.
struct OpenPlaces {
  std::vector<CodeFile> files;
  std::vector<OpenPlace> places;  ///< at most 4096
};

/// Reads the facts of a part, which come in the order in which they were written. Malformed facts are left out.
class OpenPlaceReader {
 public:
  explicit OpenPlaceReader(OpenPlaces& into) : into_(into) {}
  /// "BEGIN END BIAS BYTES MODIFIED_NS PATH", separated by tabs; the first three hexadecimal.
  void add_object(std::string_view fact);
  /// "PATH_ID ADDRESS...", likewise; addresses are hexadecimal.
  void add_place(std::string_view fact);

 private:
  struct Loaded {
    std::uint64_t begin, end, bias;
    std::uint32_t file;
  };
  OpenPlaces& into_;
  std::vector<Loaded> loaded_;  ///< the last one that has an address counts
};

}  // namespace iosig::trace
