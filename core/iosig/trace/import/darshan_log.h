// Opens a log of Darshan, format 3: header, job, names, and the regions of modules, decompressed piece by piece.
//
// A log is a header that is not compressed, then regions: the job, the names of files by record id, and one for each
// module (POSIX, MPI-IO, STDIO, DXT_POSIX and others). Each region is one or several streams of zlib or bzip2. Numbers
// have the byte order of the machine that wrote the log; the magic number tells which.
//
// Facts about the format: darshan-util's public sources, versions 3.00 to 3.41.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "iosig/base/files.h"
#include "iosig/base/result.h"
#include "iosig/trace/import/decompress.h"

namespace iosig::trace {

/// The modules that are read here.
enum class DarshanModule : std::uint8_t { posix, mpi_io, stdio, dxt_posix, dxt_mpi_io };

struct DarshanRegion {
  std::string_view name;                ///< "DXT_POSIX"
  std::uint64_t offset = 0, bytes = 0;  ///< in the file; bytes 0: there is none
  std::uint32_t version = 0;            ///< of the module's records
  bool is_partial = false;              ///< Darshan's memory did not suffice for all files
};

/// Numbers as a log has them.
class DarshanNumbers {
 public:
  explicit DarshanNumbers(bool is_swapped) : is_swapped_(is_swapped) {}
  /// Of 4 or 8 bytes.
  template <class Number>
  [[nodiscard]] Number at(const char* bytes) const {
    std::conditional_t<sizeof(Number) == 8, std::uint64_t, std::uint32_t> raw{};
    std::memcpy(&raw, bytes, sizeof raw);
    if (is_swapped_)
      raw = sizeof raw == 8 ? __builtin_bswap64(raw) : __builtin_bswap32(static_cast<std::uint32_t>(raw));
    return std::bit_cast<Number>(raw);
  }

 private:
  bool is_swapped_;
};

class DarshanLog;

/// The decompressed bytes of a region. Refers to the log.
class DarshanStream {
 public:
  DarshanStream(const DarshanLog& log, const DarshanRegion& region);
  /// Reads as many bytes as there are, up to buffer.size(). Fewer: the region ends, or damage() says why it cannot be
  /// read further.
  [[nodiscard]] Result<std::size_t> read(std::span<char> buffer);
  [[nodiscard]] const std::string& damage() const { return damage_; }

 private:
  const DarshanLog& log_;
  std::uint64_t at_, end_;
  Decompressor decompressor_;
  std::string raw_;
  std::string_view left_;
  std::string damage_;
};

/// Whether a file begins as a log of Darshan does, of any version.
[[nodiscard]] bool is_darshan(std::string_view start);

class DarshanLog {
 public:
  /// Reads header, job and names. Fails with `bad_input`, naming the byte, if it is no log of Darshan, is of a version
  /// that is not known, or its job has no processes.
  [[nodiscard]] static Result<DarshanLog> open(const std::string& path);

  [[nodiscard]] const DarshanRegion& region(DarshanModule module) const {
    return regions_.at(static_cast<std::size_t>(module));
  }
  [[nodiscard]] DarshanNumbers numbers() const { return DarshanNumbers(is_swapped_); }
  /// The path of a record; null: the log does not have it.
  [[nodiscard]] const std::string* name_of(std::uint64_t record) const;

  [[nodiscard]] std::int64_t started_ns() const { return started_ns_; }  ///< since 1970; whole seconds before 3.41
  [[nodiscard]] std::int64_t processes() const { return processes_; }    ///< of the job
  [[nodiscard]] const std::string& command() const { return command_; }  ///< program and arguments; may be empty
  /// Why not all names are there; empty: they are.
  [[nodiscard]] const std::string& damage() const { return damage_; }
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  friend class DarshanStream;
  struct Map {
    std::uint64_t offset = 0, bytes = 0;
  };
  [[nodiscard]] Result<Map> read_header();
  [[nodiscard]] Result<void> read_job(const Map& map);
  [[nodiscard]] Result<void> read_names();
  /// Checks that a region is in the file; shortens it, with damage, if it is cut.
  [[nodiscard]] Result<std::string> whole_region(const DarshanRegion& region, std::size_t max_bytes);
  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> fault(std::uint64_t byte, fmt::format_string<Args...> text,
                                            Args&&... args) const {
    return fail(ErrorKind::bad_input, "{}: byte {}: {}", shown_, byte, fmt::format(text, std::forward<Args>(args)...));
  }

  std::string shown_;
  Fd file_;
  std::uint64_t file_bytes_ = 0;
  int version_ = 0;  ///< 341 of "3.41"
  bool is_swapped_ = false;
  Compression compression_ = Compression::none;
  std::array<DarshanRegion, 5> regions_{};
  Map names_map_;
  std::unordered_map<std::uint64_t, std::string> names_;
  std::int64_t started_ns_ = 0, processes_ = 0;
  std::string command_, damage_;
};

}  // namespace iosig::trace
