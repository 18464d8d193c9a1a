// Lines of a text that is read in pieces, also if it is compressed (gzip, bzip2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "iosig/base/result.h"
#include "iosig/trace/import/decompress.h"

namespace iosig::trace {

struct ImportNotes;

class LineInput {
 public:
  /// Opens the file, a pipe, or "-": standard input. `buffer_bytes`: what is read at once. `notes`, which outlives the
  /// object, gets a remark if compressed data are cut or damaged: the text ends there then.
  [[nodiscard]] static Result<LineInput> open(const std::string& path, std::size_t buffer_bytes = 1 << 20,
                                              ImportNotes* notes = nullptr);

  /// Reads the next line, without its end, into `line`, which is valid until the next call. false: there is none.
  /// Fails if a line is longer than 16 MiB.
  [[nodiscard]] Result<bool> next(std::string_view& line);
  /// Returns the first bytes, up to the buffer's size, without consuming them. Before the first next().
  [[nodiscard]] Result<std::string_view> peek();

  /// Of the latest line, from 1.
  [[nodiscard]] std::uint64_t line_number() const { return line_number_; }
  /// Whether the latest line had no end: the file was cut, or its writer ends it so.
  [[nodiscard]] bool is_unended() const { return is_unended_; }
  /// Printable; "standard input" for "-".
  [[nodiscard]] const std::string& shown() const { return source_.shown(); }

 private:
  [[nodiscard]] Result<void> read_more();

  explicit LineInput(ByteInput source) : source_(std::move(source)) {}

  ByteInput source_;
  ImportNotes* notes_ = nullptr;
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< of what is in the buffer and not consumed
  std::uint64_t line_number_ = 0;
  bool has_ended_ = false, is_unended_ = false;
};

}  // namespace iosig::trace
