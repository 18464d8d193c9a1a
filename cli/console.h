// The terminal: the verbs write their result to stdout, and notes and progress to stderr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

/// Opens /dev/null for each closed standard stream, which prevents other files from getting its number. Reads and
/// writes of the stream still fail. Call it first.
void open_missing_streams();

enum ExitStatus : int { yes = 0, no = 1, wrong_usage = 2, bad_input = 3, system_refused = 4 };

[[nodiscard]] int exit_status(ErrorKind kind);

/// The terminal, or file, behind a descriptor.
struct Screen {
  std::size_t columns = SIZE_MAX;  ///< $COLUMNS, else the terminal's, else no limit
  std::size_t rows = 0;            ///< the terminal's; 0: none
  bool is_terminal = false;
  bool is_utf8 = false;      ///< by $LC_ALL, $LC_CTYPE or $LANG
  bool has_colours = false;  ///< a terminal, unless $NO_COLOR is set or $TERM is empty or dumb
};
[[nodiscard]] Screen screen_of(int fd);

/// Pads columns to their widest cell; right-aligns numbers. If the table is wider than the screen, only paths are
/// shortened, in the middle, the widest column first.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string text(const Screen& screen = {}) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

/// Progress of one task.
struct Progress {
  std::string what;            ///< e.g. "copying /scratch/a"
  double done = 0, total = 0;  ///< total 0: unknown
  std::string_view unit = {};  ///< e.g. "writes"; empty: bytes
};

/// Writes each line as a whole: with one write(2), or buffered with other lines if stdout is no terminal. Flushes
/// stdout before it writes to stderr, which keeps the order of lines in a shared file.
class Console {
 public:
  bool json = false;  ///< --json: one document on stdout

  /// Writes to stdout, with a newline.
  void say(std::string_view text) const;
  /// Writes to stdout; shortens paths to fit the screen.
  void say(const Table& table) const;
  /// Writes `document` to stdout, with "schema" as its first member.
  void say_json(std::string_view schema, const nlohmann::ordered_json& document) const;
  /// Writes to stderr, with a newline.
  void talk(std::string_view text) const;
  /// Writes "iosig: note: ..." to stderr.
  void note(std::string_view text) const;
  /// Writes the message to stderr; returns the exit status for the error's kind.
  int fail(const Error& error) const;

  /// Writes buffered output. Fails if any write to stdout has failed. Call it before exec.
  [[nodiscard]] Result<void> flush() const;
  /// Flushes and returns the exit status of the process: `status`, or that of a failed write to stdout, which is
  /// reported on stderr.
  [[nodiscard]] int finish(int status) const;

  /// Writes progress to stderr: one line that is overwritten (a terminal), else a new line every few seconds.
  void progress(const Progress& progress);
  /// The same for work without an amount. A new stage (`text` up to its first colon) is shown at once.
  void progress(std::string_view text);
  /// Removes the progress line.
  void end_progress();

 private:
  void to_stderr(std::string_view line) const;

  mutable std::string said_;     ///< lines not yet written to stdout
  mutable int write_error_ = 0;  ///< errno of the first write to stdout that failed
  /// Returns whether `stage` differs from the previous one.
  bool begin_stage(std::string_view stage);
  void show_progress(std::string_view text, bool at_once);

  mutable std::size_t progress_width_ = 0;  ///< columns of the line to overwrite
  std::string stage_;
  double stage_began_s_ = 0, stage_began_done_ = 0, shown_s_ = 0;
};

}  // namespace iosig::cli
