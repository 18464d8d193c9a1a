#include "iosig/format/read_order.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr std::string_view order_schema = "iosig.order/1", order_name = "iosig.order/";

/// The records of a file, all of one size.
struct Records {
  std::int64_t size = 0, start = 0;
};

std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t"));
  line.remove_prefix(word.size());
  return word;
}

std::optional<std::int64_t> take_number(std::string_view& line) {
  const auto number = parse_count<std::uint64_t>(take_word(line));
  if (!number || *number > INT64_MAX) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

bool is_at_end(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

class OrderReader {
 public:
  OrderReader(std::string_view text, std::string_view source) : rest_(text), source_(source) {}

  Result<KnownReads> reads() {
    if (const std::string_view first = next_line(); first != order_schema)
      return first.starts_with(order_name)
                 ? refuse(fmt::format("version '{}' of the format; this program reads {}", printable(cut_to(first, 40)),
                                      order_schema))
                 : refuse(fmt::format("this is not an order of reads; expected \"{}\"", order_schema));
    while (!rest_.empty()) {
      const std::string_view line = next_line();
      if (is_at_end(line) || line.front() == '#') continue;
      if (auto taken = take(line); !taken) return pass_on(std::move(taken.error()));
    }
    if (!known_.ends.empty() && known_.ends.back() == known_.reads.size()) known_.ends.pop_back();
    return std::move(known_);
  }

 private:
  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view what) const {
    return fail(ErrorKind::bad_input, "{}:{}: {}", source_, line_, what);
  }

  std::string_view next_line() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  Result<void> take(std::string_view line) {
    std::string_view rest = line;
    const std::string_view word = take_word(rest);
    if (word == "records") return take_records(rest);
    if (word == "stream" && is_at_end(rest)) {
      end_stream();
      return {};
    }
    if (known_.reads.size() == max_known_reads)
      return refuse(fmt::format("more than {} reads: give the first of them", max_known_reads));
    rest = line;
    const auto first = take_number(rest);
    if (records_) {
      if (!first || !is_at_end(rest)) return refuse(unexpected(line, "the number of a record, from 0"));
      return add_record(*first);
    }
    const auto length = take_number(rest);
    if (!first || !length || *length == 0 || !is_at_end(rest))
      return refuse(
          unexpected(line, "an offset and a length above 0, in bytes, e.g. \"65536 4096\", or \"records SIZE\""));
    if (*first > INT64_MAX - *length) return refuse("a read beyond 2^63 - 1 bytes");
    known_.reads.push_back({*first, *length});
    return {};
  }

  static std::string unexpected(std::string_view line, std::string_view expected) {
    return fmt::format("'{}': expected {}", printable(cut_to(line, 40)), expected);
  }

  Result<void> take_records(std::string_view rest) {
    if (records_ || !known_.reads.empty()) return refuse("\"records\" is given before the first read, and once");
    Records found;
    const auto size = take_number(rest);
    if (const std::string_view word = take_word(rest); word == "at") {
      const auto start = take_number(rest);
      found.start = start.value_or(-1);
    } else if (!word.empty()) {
      found.start = -1;
    }
    if (!size || *size == 0 || found.start < 0 || !is_at_end(rest))
      return refuse("expected \"records SIZE\" or \"records SIZE at OFFSET\", in bytes, e.g. \"records 16384 at 512\"");
    found.size = *size;
    records_ = found;
    return {};
  }

  Result<void> add_record(std::int64_t number) {
    FileRead read{0, records_->size};
    std::int64_t end = 0;
    if (__builtin_mul_overflow(number, records_->size, &read.offset) ||
        __builtin_add_overflow(read.offset, records_->start, &read.offset) ||
        __builtin_add_overflow(read.offset, read.length, &end))
      return refuse("a record beyond 2^63 - 1 bytes");
    known_.reads.push_back(read);
    return {};
  }

  /// Streams without reads are left out.
  void end_stream() {
    const std::size_t end = known_.reads.size();
    if (end > (known_.ends.empty() ? 0 : known_.ends.back())) known_.ends.push_back(end);
  }

  std::string_view rest_, source_;
  std::size_t line_ = 0;
  std::optional<Records> records_;
  KnownReads known_;
};

}  // namespace

Result<KnownReads> parse_read_order(std::string_view text, std::string_view source) {
  return OrderReader(text, source).reads();
}

}  // namespace iosig
