// Requests as text for `iosig plan`: CSV with a header line, as `iosig export --format csv` prints it, or lines of
// numbers, as `workloads print` does.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/striping.h"

namespace iosig::cli {

struct RequestLine {
  std::string path;  ///< "": the column is missing
  Request request;
  std::string process;  ///< what tells processes apart: rank, or host and pid; "": no such column
  bool has_rank = false;
  std::string host;
  std::string layer;  ///< "": the column is missing
};

/// Parses lines; the first one decides on the form.
///
/// CSV: needs `offset` and `length`, and `call` (a call's name) or `kind` (read, write); also knows `path`, `start_ns`
/// or `start_s`, `rank`, `host`, `pid`, `layer`, and `result`, the bytes moved, which counts instead of the length;
/// other columns are ignored. Lines whose call moves no bytes, whose result is negative, or that have no offset are no
/// requests. Numbers: offset, length, and more that is ignored except for the fourth, the process; all of one kind.
class RequestLines {
 public:
  /// `source`: for messages. `is_write`: of lines of numbers.
  RequestLines(std::string source, bool is_write) : source_(std::move(source)), is_write_(is_write) {}

  /// Sets `out`; returns false for a line that is no request. Fails with `bad_input`, "source:line: ...".
  [[nodiscard]] Result<bool> read(std::string_view line, RequestLine& out);
  /// `bad_input` about the present line: "source:line: what".
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view what) const;

 private:
  enum Field { path, offset, length, call, kind, start_ns, start_s, rank, host, pid, layer, result, fields };
  [[nodiscard]] Result<void> read_header(std::string_view line);
  [[nodiscard]] Result<bool> read_numbers(std::string_view line, RequestLine& out) const;
  [[nodiscard]] Result<bool> read_fields(std::string_view line, RequestLine& out);
  [[nodiscard]] std::string_view value(Field field) const;

  std::string source_;
  bool is_write_, has_header_ = false;
  std::uint64_t line_ = 0;
  std::vector<std::size_t> columns_;  ///< of each Field; npos: missing
  std::vector<std::string> values_;   ///< of the present line
};

}  // namespace iosig::cli
