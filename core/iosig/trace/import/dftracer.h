// Reads DFTracer's logs as text, one event in JSON per line (.pfw; version 1 with letters as `ph`, 2 with numbers).
//
//     {"name":"FH",...,"ph":4,"args":{"name":"/data/a","value":"e03b",...}}                        fhash e03b is
//     /data/a
//     {"name":"pwrite","cat":"POSIX","pid":7,"tid":8,"ts":1795692541620507,"dur":7,"ph":1,
//      "args":{"hhash":"6882","fhash":"e03b","offset":1000,"count":30,"ret":30}}                   times in
//      microseconds
//
// There are no descriptors. The file offset of a read or write follows from the opens, seeks and transfers of its
// process on its path, as long as the process has it open once and does not fork meanwhile; else it is left empty.
// What has no `ret` (open, fsync and others in version 2) is taken as done, with result 0.
#pragma once

#include <memory>

#include "iosig/trace/import/import.h"
#include "iosig/trace/import/line_input.h"

namespace iosig::trace {

/// Whether a line is an event, or the bracket that begins a log.
[[nodiscard]] bool is_dftracer_line(std::string_view line);

/// Reads the logs of one job, which share the names of files and hosts.
class DftracerImport {
 public:
  /// Refers to both.
  DftracerImport(TraceWriter& writer, ImportNotes& notes);
  DftracerImport(DftracerImport&&) = delete;
  ~DftracerImport();
  /// Adds the calls of one log, or of several, one after the other. Lines that are malformed are left out, with a
  /// remark.
  [[nodiscard]] Result<void> read(LineInput& input);

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace iosig::trace
