// What the verbs share with the person at the terminal: stdout has the answer, stderr the talk.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
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

/// Columns padded to their widest cell; numbers flush right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

class Console {
 public:
  bool json = false;  ///< --json: one document on stdout

  /// To stdout, with a line end.
  void say(std::string_view text) const;
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

  /// One line on stderr that is drawn over (a terminal) or, elsewhere, printed only when `text` changes before its
  /// first colon.
  void progress(std::string_view text);
  /// Removes the progress line.
  void end_progress();

 private:
  mutable int write_error_ = 0;  ///< errno of the first write to stdout that failed
  std::size_t progress_width_ = 0;
  std::string progress_word_;
};

}  // namespace iosig::cli
