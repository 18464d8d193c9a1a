// What the verbs share with the person at the terminal: stdout has the answer, stderr the talk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

/// Opens /dev/null for those of standard input, output and error that the caller has closed, so that no file gets
/// their numbers; reading or writing them fails still. To be called first.
void open_missing_streams();

enum ExitStatus : int { yes = 0, no = 1, wrong_usage = 2, bad_input = 3, system_refused = 4 };

[[nodiscard]] int exit_status(ErrorKind kind);

/// The terminal, or file, behind a descriptor.
struct Screen {
  std::size_t columns = SIZE_MAX;  ///< $COLUMNS, else the terminal's, else no limit
  std::size_t rows = 0;            ///< the terminal's; 0: none
  bool is_terminal = false;
  bool is_utf8 = false;      ///< as $LC_ALL, $LC_CTYPE and $LANG say
  bool has_colours = false;  ///< a terminal, unless $NO_COLOR is set or $TERM is dumb
};
[[nodiscard]] Screen screen_of(int fd);

/// Columns padded to their widest cell; numbers flush right. A table that is wider than the screen shortens its paths
/// in the middle, those of the widest column first, and nothing else.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string text(const Screen& screen = {}) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

/// How far a piece of work is.
struct Progress {
  std::string what;            ///< e.g. "copying /scratch/a"
  double done = 0, total = 0;  ///< total 0: not known
  std::string_view unit = {};  ///< e.g. "writes"; empty: bytes
};

/// Writes each line whole: by one write(2) or, to standard output where it is no terminal, together with other lines.
/// Flushes standard output before it writes to standard error, so that lines keep their order in a shared file.
class Console {
 public:
  bool json = false;  ///< --json: one document on stdout

  /// To stdout, with a line end.
  void say(std::string_view text) const;
  /// To stdout, no wider than the screen where its paths can be shortened.
  void say(const Table& table) const;
  /// To stdout: `document` with its "schema" first.
  void say_json(std::string_view schema, const nlohmann::ordered_json& document) const;
  /// To stderr, with a line end.
  void talk(std::string_view text) const;
  /// To stderr, as "iosig: note: ...".
  void note(std::string_view text) const;
  /// To stderr; returns the exit status for the error's kind.
  int fail(const Error& error) const;

  /// All that was said is written, or why not. To be asked before the process becomes another program.
  [[nodiscard]] Result<void> flush() const;
  /// What the process exits with after a verb that returned `status`: another one, told on stderr, where what was said
  /// could not be written.
  [[nodiscard]] int finish(int status) const;

  /// On stderr: a line that is drawn over (a terminal) or, elsewhere, one more line every few seconds.
  void progress(const Progress& progress);
  /// The same for work without an amount. A new stage, which is `text` up to its first colon, is shown at once.
  void progress(std::string_view text);
  /// Removes the progress line.
  void end_progress();

 private:
  void to_stderr(std::string_view line) const;

  mutable std::string said_;     ///< lines that are not yet written to stdout
  mutable int write_error_ = 0;  ///< errno of the first write to stdout that failed
  /// Whether `stage` is another than before.
  bool begin_stage(std::string_view stage);
  void show_progress(std::string_view text, bool at_once);

  mutable std::size_t progress_width_ = 0;  ///< columns of the line that is drawn over
  std::string stage_;
  double stage_began_s_ = 0, stage_began_done_ = 0, shown_s_ = 0;
};

}  // namespace iosig::cli
