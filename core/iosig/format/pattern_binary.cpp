#include "iosig/format/pattern_binary.h"

#include <algorithm>

#include "iosig/base/crc32c.h"
#include "iosig/format/nest_bits.h"
#include "iosig/model/bits.h"
#include "iosig/model/literals.h"
#include "iosig/model/nest.h"

namespace iosig {
namespace {

constexpr std::string_view magic = "IOP";
constexpr std::uint8_t version = 1;
// Flags in the byte of the number of columns.
constexpr std::uint8_t has_follows = 0x80, has_exceptions = 0x40, has_usual_kinds = 0x20, has_kinds = 0x10;
constexpr unsigned follows_bits = 4, kind_bits = 4;
constexpr std::size_t checksum_bytes = 4;

/// Returns logical, length, physical, id, one per column; nothing for more than 4 columns.
std::array<Column, max_columns> usual_kinds(std::uint32_t columns) {
  std::array<Column, max_columns> usual{};
  for (std::uint32_t column = 0; column < columns && columns <= 4; ++column)
    usual[column] = static_cast<Column>(column + 1);
  return usual;
}

// ---- writing ------------------------------------------------------------------------------------------------------

class Writer {
 public:
  explicit Writer(const Pattern& pattern) : pattern_(pattern) {}

  std::vector<std::uint8_t> bytes() {
    bytes_.assign(magic.begin(), magic.end());
    bytes_.push_back(version);
    const bool is_usual = pattern_.kinds == usual_kinds(pattern_.columns);
    const bool is_any = pattern_.kinds == Pattern().kinds;
    bytes_.push_back(static_cast<std::uint8_t>(pattern_.columns | (pattern_.follows_any() ? has_follows : 0) |
                                               (pattern_.exception_positions.empty() ? 0 : has_exceptions) |
                                               (is_any     ? 0
                                                : is_usual ? has_usual_kinds
                                                           : has_kinds)));
    if (!is_any && !is_usual) {
      BitWriter bits(bytes_);
      for (std::uint32_t column = 0; column < pattern_.columns; ++column)
        bits.put(static_cast<std::uint64_t>(pattern_.kinds[column]), kind_bits);
      bits.end();
    }
    if (pattern_.follows_any()) {
      BitWriter bits(bytes_);
      for (std::uint32_t column = 0; column < pattern_.columns; ++column)
        bits.put(static_cast<std::uint64_t>(pattern_.follows[column] + 1), follows_bits);
      bits.end();
    }
    if (!pattern_.exception_positions.empty()) add_exceptions();
    for (std::size_t n = 0; n < pattern_.terms.size(); ++n) add_term(n);
    const std::uint32_t checksum = crc32c(bytes_);
    for (std::size_t n = 0; n < checksum_bytes; ++n) bytes_.push_back(static_cast<std::uint8_t>(checksum >> (8 * n)));
    return std::move(bytes_);
  }

 private:
  void add_term(std::size_t n) {
    const Term& term = pattern_.terms[n];
    if (term.is_nest) return append_nest(pattern_, n, bytes_);
    const auto next = std::find_if(pattern_.terms.begin() + static_cast<std::ptrdiff_t>(n) + 1, pattern_.terms.end(),
                                   [](const Term& later) { return !later.is_nest; });
    const std::uint64_t end = next == pattern_.terms.end() ? pattern_.literals.size() : next->at;
    bytes_.push_back(0);
    bytes_.insert(bytes_.end(), pattern_.literals.begin() + static_cast<std::ptrdiff_t>(term.at),
                  pattern_.literals.begin() + static_cast<std::ptrdiff_t>(end));
  }

  void add_exceptions() {
    append_varint(pattern_.exception_positions.size(), bytes_);
    std::uint64_t before = 0;
    for (const std::uint64_t position : pattern_.exception_positions) {
      append_varint(position - before, bytes_);
      before = position;
    }
    const std::span<const std::int64_t> values(pattern_.exception_values);
    const std::size_t block = block_vectors * pattern_.columns;
    for (std::size_t at = 0; at < values.size(); at += block)
      append_block(values.subspan(at, std::min(block, values.size() - at)), pattern_.columns, bytes_);
  }

  const Pattern& pattern_;
  std::vector<std::uint8_t> bytes_;
};

// ---- reading ------------------------------------------------------------------------------------------------------

class BinaryReader {
 public:
  BinaryReader(std::span<const std::uint8_t> bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  Result<Pattern> pattern() {
    if (auto read = header(); !read) return pass_on(std::move(read.error()));
    while (at_ < bytes_.size())
      if (auto read = term(); !read) return pass_on(std::move(read.error()));
    if (auto sound = checked(pattern_); !sound) return refuse(sound.error().message);
    return std::move(pattern_);
  }

 private:
  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view what) const {
    return fail(ErrorKind::bad_input, "{}: byte {}: {}", source_, at_, what);
  }

  Result<void> header() {
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    if (!text.starts_with(magic)) return refuse("this is not a pattern; expected it to begin with \"IOP\"");
    at_ = magic.size();
    if (at_ == bytes_.size()) return refuse("it is cut after the magic");
    if (bytes_[at_] != version)
      return refuse(fmt::format("version {} of the format; this program reads {}", bytes_[at_], version));
    ++at_;
    if (bytes_.size() < at_ + 1 + checksum_bytes) return refuse("it is cut; make it again");
    const auto held = bytes_.last(checksum_bytes);
    bytes_ = bytes_.first(bytes_.size() - checksum_bytes);
    const std::uint32_t found =
        held[0] | std::uint32_t{held[1]} << 8 | std::uint32_t{held[2]} << 16 | std::uint32_t{held[3]} << 24;
    if (found != crc32c(bytes_)) return refuse("its checksum does not fit: it was cut or changed; make it again");
    const std::uint8_t columns = bytes_[at_++];
    pattern_.columns = columns & ~(has_follows | has_exceptions | has_usual_kinds | has_kinds);
    if (pattern_.columns < 1 || pattern_.columns > max_columns)
      return refuse(fmt::format("{} columns; expected 1 to {}", pattern_.columns, max_columns));
    if ((columns & has_usual_kinds) != 0) {
      if ((columns & has_kinds) != 0 || pattern_.columns > 4) return refuse("its columns are none that there are");
      pattern_.kinds = usual_kinds(pattern_.columns);
    }
    if ((columns & has_kinds) != 0) {
      BitReader bits(bytes_.subspan(at_));
      for (std::uint32_t column = 0; column < pattern_.columns; ++column) {
        const std::uint64_t kind = bits.take(kind_bits);
        if (bits.is_past_end() || kind >= column_kinds) return refuse("its columns are none that there are");
        pattern_.kinds[column] = static_cast<Column>(kind);
      }
      at_ += bits.taken();
    }
    if ((columns & has_follows) != 0) {
      BitReader bits(bytes_.subspan(at_));
      for (std::uint32_t column = 0; column < pattern_.columns; ++column)
        pattern_.follows[column] = static_cast<std::int8_t>(static_cast<int>(bits.take(follows_bits)) - 1);
      if (bits.is_past_end()) return refuse("the columns that are followed are cut");
      at_ += bits.taken();
    }
    if ((columns & has_exceptions) != 0) return exceptions();
    return {};
  }

  Result<void> term() {
    const std::uint64_t first = pattern_.count();
    if (bytes_[at_] == 0) {
      ++at_;
      const auto size = size_of_block(bytes_.subspan(at_), pattern_.columns);
      if (!size) return refuse("this is not a block of literals");
      const auto place = bytes_.subspan(at_, size->bytes);
      if (pattern_.literals.empty()) pattern_.literals.reserve(bytes_.size() - at_);
      pattern_.terms.push_back({false, first, size->vectors, pattern_.literals.size()});
      pattern_.literals.insert(pattern_.literals.end(), place.begin(), place.end());
      at_ += size->bytes;
    } else {
      const auto root = static_cast<std::uint32_t>(pattern_.nodes.size());
      const auto read = read_nest(bytes_.subspan(at_), pattern_);
      if (!read) return refuse(read.error());
      if (const std::string fault = fault_of(view_of(pattern_), root); !fault.empty())
        return refuse("a nest with " + fault);
      at_ += *read;
      pattern_.terms.push_back({true, first, count_of(view_of(pattern_), root, {}), root});
    }
    if (pattern_.terms.back().count > max_elements - first) return refuse("more than 2^63 - 1 elements");
    return {};
  }

  Result<void> exceptions() {
    const auto count = read_varint(bytes_, at_);
    if (!count) return refuse("the number of exceptions is cut");
    if (*count > bytes_.size() - at_) return refuse(fmt::format("it ends before its {} exceptions", *count));
    std::uint64_t position = 0;
    for (std::uint64_t n = 0; n < *count; ++n) {
      const auto step = read_varint(bytes_, at_);
      if (!step || *step > max_elements - position) return refuse("an exception's position is cut or too large");
      position += *step;
      pattern_.exception_positions.push_back(position);
    }
    for (std::uint64_t left = *count; left > 0;) {
      const auto read = read_block(bytes_.subspan(at_), pattern_.columns, block_);
      if (!read || block_.size() / pattern_.columns != std::min<std::uint64_t>(left, block_vectors))
        return refuse("the exceptions' vectors are not a block of literals");
      at_ += *read;
      left -= block_.size() / pattern_.columns;
      pattern_.exception_values.insert(pattern_.exception_values.end(), block_.begin(), block_.end());
    }
    return {};
  }

  std::span<const std::uint8_t> bytes_;
  std::string_view source_;
  std::size_t at_ = 0;
  Pattern pattern_;
  std::vector<std::int64_t> block_;
};

}  // namespace

std::vector<std::uint8_t> pattern_bytes(const Pattern& pattern) { return Writer(pattern).bytes(); }

Result<Pattern> pattern_from_bytes(std::span<const std::uint8_t> bytes, std::string_view source) {
  return BinaryReader(bytes, source).pattern();
}

bool is_pattern_binary(std::string_view bytes) { return bytes.starts_with(magic); }

}  // namespace iosig
