#include "iosig/trace/import/line_input.h"

#include <fmt/format.h>

#include <cstring>

#include "iosig/trace/import/import.h"

namespace iosig::trace {
namespace {

constexpr std::size_t max_line_bytes = std::size_t{16} << 20;

}  // namespace

Result<LineInput> LineInput::open(const std::string& path, std::size_t buffer_bytes, ImportNotes* notes) {
  auto source = ByteInput::open(path);
  if (!source) return pass_on(source.error());
  LineInput input(std::move(*source));
  input.notes_ = notes;
  input.buffer_.resize(buffer_bytes);
  return input;
}

Result<void> LineInput::read_more() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    if (buffer_.size() >= max_line_bytes)
      return fail(ErrorKind::bad_input, "{}:{}: a line of more than {} bytes; this is no trace as text", shown(),
                  line_number_ + 1, max_line_bytes);
    buffer_.resize(buffer_.size() * 2);
  }
  const auto got = source_.read(std::span(buffer_).subspan(end_));
  if (!got) return pass_on(got.error());
  has_ended_ = *got == 0;
  end_ += *got;
  if (has_ended_ && notes_ != nullptr && !source_.damage().empty())
    notes_->remark(fmt::format("{}: {}; what is before it is read", shown(), source_.damage()));
  return {};
}

Result<std::string_view> LineInput::peek() {
  while (!has_ended_ && end_ < buffer_.size())
    if (auto done = read_more(); !done) return pass_on(done.error());
  return std::string_view(buffer_).substr(begin_, end_ - begin_);
}

Result<bool> LineInput::next(std::string_view& line) {
  std::size_t searched = 0;
  for (;;) {
    const char* const from = buffer_.data() + begin_;
    const auto* const found = static_cast<const char*>(std::memchr(from + searched, '\n', end_ - begin_ - searched));
    if (found != nullptr || (has_ended_ && end_ > begin_)) {
      is_unended_ = found == nullptr;
      const std::size_t length = is_unended_ ? end_ - begin_ : static_cast<std::size_t>(found - from);
      line = {from, length};
      begin_ += length + (is_unended_ ? 0 : 1);
      ++line_number_;
      return true;
    }
    if (has_ended_) return false;
    searched = end_ - begin_;
    if (auto done = read_more(); !done) return pass_on(done.error());
  }
}

}  // namespace iosig::trace
