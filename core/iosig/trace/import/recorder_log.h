// A directory that Recorder 3 wrote: which calls there were (signatures), in which order (a grammar for each rank), and
// when (timestamps).
//
// A signature is a function with its arguments as text; equal calls share one. The order of a rank's calls is that of
// the grammar's rule -1: symbols from 0 on are signatures, those below are rules, each repeated as often as its
// exponent says. Each call has two timestamps of 32 bits, ticks from the start of the rank's call before: start, end.
//
//     rule -1: (0, 1) (-2, 50)   rule -2: (1, 1) (2, 3)       one open, then 50 times: a seek and three reads
//
// Versions: 3, as several files (with or without the file VERSION) or as one, recorder.dat; and its development
// version 2.5. Facts about the format: Recorder's public sources, lib/recorder-cst-cfg.c, recorder-timestamps.c,
// recorder-logger.c and tools/reader.c.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig::trace {

/// Whether a directory has the files of Recorder.
[[nodiscard]] bool is_recorder_directory(const std::string& path);

/// A function with its arguments.
struct RecorderSignature {
  std::int32_t function = -1;  ///< RecorderLog::function(); -1: the log has no such signature
  std::uint64_t tid = 0;       ///< 0: not recorded
  unsigned depth = 0;          ///< of calls of the thread in which this one was made
  std::vector<std::string> arguments;
};

struct RecorderGrammar {
  using Symbols = std::vector<std::pair<std::int32_t, std::int32_t>>;  ///< symbol, how often
  std::unordered_map<std::int32_t, Symbols> rules;
};

/// Ticks since the start of the rank's call before.
struct RecorderTimes {
  std::uint32_t start = 0, end = 0;
};

class RecorderLog {
 public:
  /// Reads versions and metadata. Fails with `bad_input`, naming file and byte, if it is none, or of another version.
  [[nodiscard]] static Result<RecorderLog> open(const std::string& path);

  [[nodiscard]] std::int32_t ranks() const { return ranks_; }
  [[nodiscard]] double started_s() const { return started_s_; }  ///< of rank 0, since 1970
  [[nodiscard]] double tick_s() const { return tick_s_; }
  [[nodiscard]] bool has_relative_offsets() const { return has_relative_offsets_; }
  [[nodiscard]] std::string_view function(std::int32_t number) const;  ///< "": there is none
  [[nodiscard]] const std::string& shown() const { return shown_; }
  /// Whether all ranks have the same signatures.
  [[nodiscard]] bool has_shared_signatures() const { return is_shared_; }

  [[nodiscard]] Result<std::vector<RecorderSignature>> signatures(std::int32_t rank);
  [[nodiscard]] Result<RecorderGrammar> grammar(std::int32_t rank);
  /// Of all calls of the rank that are there; `damage` says why others may be missing.
  [[nodiscard]] Result<std::vector<RecorderTimes>> times(std::int32_t rank, std::string& damage);

 private:
  /// Bytes in a file.
  struct Place {
    std::string name;
    std::uint64_t offset = 0, bytes = 0;
  };
  enum Section : std::uint32_t {
    metadata,
    timestamps,
    all_signatures,
    grammars,
    grammar_numbers,
    rank_signatures,
    rank_grammar
  };
  [[nodiscard]] Result<void> read_sections();
  [[nodiscard]] Result<void> read_metadata(bool is_old);
  /// Of a rank, or of all (-1).
  [[nodiscard]] Result<Place> place_of(Section section, std::int32_t rank);
  [[nodiscard]] Result<std::string> read(const Place& place, std::uint64_t limit);
  /// Where the grammar of a rank is, and the times.
  [[nodiscard]] Result<Place> grammar_place(std::int32_t rank);
  [[nodiscard]] Result<Place> times_place(std::int32_t rank);
  /// Reads a size before and after compression, and that many bytes. Removes them from the place.
  [[nodiscard]] Result<std::string> read_compressed(Place& place);
  template <class... Args>
  [[nodiscard]] tl::unexpected<Error> fault(const Place& place, std::uint64_t byte, fmt::format_string<Args...> text,
                                            Args&&... args) const {
    return fail(ErrorKind::bad_input, "{}/{}: byte {}: {}", shown_, place.name, place.offset + byte,
                fmt::format(text, std::forward<Args>(args)...));
  }

  std::string shown_;
  Fd directory_;
  struct Entry {
    std::uint32_t section = 0;
    std::int32_t rank = 0;
    Place place;
  };
  std::vector<Entry> sections_;  ///< of recorder.dat; empty: the log is several files
  std::int32_t ranks_ = 0;
  double started_s_ = 0, tick_s_ = 0;
  bool is_shared_ = false, has_compressed_times_ = false, has_relative_offsets_ = false;
  std::vector<std::string> functions_;
  std::vector<Place> grammar_places_, times_places_;  ///< of shared grammars by number, of times by rank; once read
};

}  // namespace iosig::trace
