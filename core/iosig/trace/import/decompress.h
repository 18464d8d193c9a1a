// Decompresses gzip, zlib and bzip2 data piece by piece; several streams one after another count as one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig::trace {

enum class Compression : std::uint8_t { none, zlib, bzip2 };  ///< zlib: also with gzip's header

/// Returns how the text that begins with `start` is compressed, by gzip's and bzip2's magic numbers.
[[nodiscard]] Compression compression_of(std::string_view start);

class Decompressor {
 public:
  explicit Decompressor(Compression compression);
  Decompressor(Decompressor&&) noexcept;
  Decompressor& operator=(Decompressor&&) noexcept;
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;
  ~Decompressor();

  /// Decompresses from the front of `input` to the front of `output`, and removes from both what was used, until one is
  /// empty. False: the input is damaged; what was decompressed before is in the output. Zeros after a stream are
  /// padding.
  [[nodiscard]] bool run(std::string_view& input, std::span<char>& output);
  /// Whether a stream has begun and not ended.
  [[nodiscard]] bool is_within_stream() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A file, decompressed if its first bytes say that it is compressed.
class ByteInput {
 public:
  /// Opens the file, a pipe, or "-": standard input.
  [[nodiscard]] static Result<ByteInput> open(const std::string& path);
  /// Reads 1 to buffer.size() bytes; 0: the end, or damage() says what is missing.
  [[nodiscard]] Result<std::size_t> read(std::span<char> buffer);
  /// Why the compressed data ended early, as "the compressed data are damaged at byte 100"; empty: they did not.
  [[nodiscard]] const std::string& damage() const { return damage_; }
  /// Printable; "standard input" for "-".
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  [[nodiscard]] Result<std::size_t> read_file(std::span<char> buffer);

  std::string shown_;
  Fd file_;
  std::unique_ptr<Decompressor> decompressor_;
  std::string raw_;        ///< the file's own bytes
  std::string_view left_;  ///< of them, those that are not consumed
  std::uint64_t raw_end_ = 0;
  bool has_begun_ = false, has_ended_ = false;
  std::string damage_;
};

}  // namespace iosig::trace
