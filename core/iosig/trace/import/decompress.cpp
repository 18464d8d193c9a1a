#include "iosig/trace/import/decompress.h"

#include <bzlib.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "iosig/base/text.h"

namespace iosig::trace {
namespace {

constexpr int zlib_or_gzip = 15 + 32;  ///< window bits of inflateInit2
constexpr std::size_t raw_buffer = std::size_t{1} << 16;
constexpr std::size_t max_step = std::size_t{1} << 30;  ///< the libraries count in 32 bits

}  // namespace

Compression compression_of(std::string_view start) {
  if (start.starts_with("\x1f\x8b")) return Compression::zlib;
  if (start.size() > 3 && start.starts_with("BZh") && start[3] >= '1' && start[3] <= '9') return Compression::bzip2;
  return Compression::none;
}

struct Decompressor::State {
  explicit State(Compression of) : compression(of) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { end(); }

  [[nodiscard]] bool begin() {
    zlib = {};
    bzip2 = {};
    is_open = compression == Compression::zlib ? ::inflateInit2(&zlib, zlib_or_gzip) == Z_OK
                                               : ::BZ2_bzDecompressInit(&bzip2, 0, 0) == BZ_OK;
    return is_open;
  }
  void end() {
    if (!std::exchange(is_open, false)) return;
    if (compression == Compression::zlib)
      ::inflateEnd(&zlib);
    else
      ::BZ2_bzDecompressEnd(&bzip2);
  }
  /// One call of the library. False: damage.
  [[nodiscard]] bool step(std::string_view& input, std::span<char>& output) {
    const auto given = static_cast<unsigned>(std::min(input.size(), max_step));
    const auto room = static_cast<unsigned>(std::min(output.size(), max_step));
    unsigned unread = 0, unwritten = 0;
    bool is_sound = false, has_ended = false;
    if (compression == Compression::zlib) {
      zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
      zlib.avail_in = given;
      zlib.next_out = reinterpret_cast<Bytef*>(output.data());
      zlib.avail_out = room;
      const int done = ::inflate(&zlib, Z_NO_FLUSH);
      has_ended = done == Z_STREAM_END;
      is_sound = done == Z_OK || done == Z_BUF_ERROR || has_ended;
      unread = zlib.avail_in, unwritten = zlib.avail_out;
    } else {
      bzip2.next_in = const_cast<char*>(input.data());
      bzip2.avail_in = given;
      bzip2.next_out = output.data();
      bzip2.avail_out = room;
      const int done = ::BZ2_bzDecompress(&bzip2);
      has_ended = done == BZ_STREAM_END;
      is_sound = done == BZ_OK || has_ended;
      unread = bzip2.avail_in, unwritten = bzip2.avail_out;
    }
    input.remove_prefix(given - unread);
    output = output.subspan(room - unwritten);
    if (has_ended) end();
    return is_sound;
  }

  Compression compression;
  z_stream zlib{};
  bz_stream bzip2{};
  bool is_open = false, has_had_stream = false;
};

Decompressor::Decompressor(Compression compression) : state_(std::make_unique<State>(compression)) {}
Decompressor::Decompressor(Decompressor&&) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&&) noexcept = default;
Decompressor::~Decompressor() = default;

bool Decompressor::is_within_stream() const { return state_->is_open; }

bool Decompressor::run(std::string_view& input, std::span<char>& output) {
  if (state_->compression == Compression::none) {
    const std::size_t count = std::min(input.size(), output.size());
    std::memcpy(output.data(), input.data(), count);
    input.remove_prefix(count);
    output = output.subspan(count);
    return true;
  }
  while (!input.empty() && !output.empty()) {
    if (!state_->is_open) {
      if (state_->has_had_stream) input.remove_prefix(std::min(input.find_first_not_of('\0'), input.size()));
      if (input.empty()) return true;
      if (!state_->begin()) return false;
      state_->has_had_stream = true;
    }
    const std::size_t before = input.size() + output.size();
    if (!state_->step(input, output)) return false;
    if (state_->is_open && input.size() + output.size() == before) return false;  // no progress
  }
  return true;
}

Result<ByteInput> ByteInput::open(const std::string& path) {
  ByteInput input;
  input.shown_ = path == "-" ? "standard input" : printable(path);
  input.file_ =
      Fd(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!input.file_) return system_failure("open", path);
  return input;
}

Result<std::size_t> ByteInput::read_file(std::span<char> buffer) {
  const ssize_t got = ::read(file_.get(), buffer.data(), buffer.size());
  if (got < 0) return system_failure("read", shown_);  // with EINTR, too: the user has interrupted it
  raw_end_ += static_cast<std::uint64_t>(got);
  return static_cast<std::size_t>(got);
}

Result<std::size_t> ByteInput::read(std::span<char> buffer) {
  if (!has_begun_) {  // at least four bytes tell the compression
    has_begun_ = true;
    raw_.resize(raw_buffer);
    std::size_t filled = 0;
    while (filled < 4) {
      auto got = read_file(std::span(raw_).subspan(filled));
      if (!got) return got;
      if (*got == 0) break;
      filled += *got;
    }
    left_ = std::string_view(raw_).substr(0, filled);
    if (const Compression found = compression_of(left_); found != Compression::none)
      decompressor_ = std::make_unique<Decompressor>(found);
  }
  if (!decompressor_) {
    if (left_.empty()) return read_file(buffer);
    const std::size_t count = std::min(left_.size(), buffer.size());
    std::memcpy(buffer.data(), left_.data(), count);
    left_.remove_prefix(count);
    return count;
  }
  std::span<char> room = buffer;
  while (room.size() == buffer.size() && !has_ended_) {
    if (left_.empty()) {
      auto got = read_file(raw_);
      if (!got) return got;
      left_ = std::string_view(raw_).substr(0, *got);
      has_ended_ = *got == 0;
      if (has_ended_ && decompressor_->is_within_stream())
        damage_ = fmt::format("the compressed data are cut at byte {}", raw_end_);
    }
    if (!decompressor_->run(left_, room)) {
      has_ended_ = true;
      damage_ = fmt::format("the compressed data are damaged before byte {}", raw_end_ - left_.size());
    }
  }
  return buffer.size() - room.size();
}

}  // namespace iosig::trace
