// Patterns of nests and exceptions from a fuzzer's bytes.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "iosig/model/nest.h"
#include "iosig/model/pattern_builder.h"

namespace iosig::fuzz {

/// Nests and exceptions from bytes, most numbers small.
class NestMaker {
 public:
  explicit NestMaker(std::string_view bytes) : bytes_(bytes) {}

  Pattern make() {
    const auto kind = static_cast<unsigned>(next());
    const std::uint32_t columns = 3 + (kind & 1);
    std::array<std::int8_t, max_columns> follows;
    follows.fill(-1);
    if ((kind & 6) == 2) follows[2] = 1;
    if ((kind & 14) == 4) follows[0] = 1;
    PatternBuilder builder(columns, follows);
    while (!bytes_.empty() && builder.count() < 400) {
      nodes_.clear();
      numbers_.clear();
      add_loop(0, columns);
      Pattern alone;
      alone.columns = columns;
      alone.nodes = nodes_;
      alone.numbers = numbers_;
      const std::uint64_t count = count_of(alone);
      if (count == 0 || count > 400) continue;
      const std::uint64_t first = builder.count();
      builder.add_nest(nodes_, numbers_, count);
      for (std::uint64_t n = next() & 7; n > 0 && n < count; n += 1 + static_cast<std::uint64_t>(next() & 15)) {
        const std::array<std::int64_t, 4> vector = {number() & INT64_MAX, next() & 15, number(), 0};
        builder.add_exception(first + n, vector.data());
      }
    }
    return builder.finish();
  }

 private:
  int next() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  std::int64_t number() {
    const int byte = next();
    if (byte >= 0xf8) return static_cast<std::int64_t>((std::uint64_t{1} << (56 + (byte & 7))) - 1);
    return byte < 0x80 ? byte & 31 : -(byte & 15);
  }

  void add_loop(std::size_t depth, std::uint32_t columns) {
    const std::size_t me = nodes_.size();
    nodes_.push_back({true, 0, static_cast<std::uint32_t>(numbers_.size())});
    numbers_.push_back(1 + (next() & 7));
    for (std::size_t d = 0; d < depth; ++d) {
      const int byte = next();
      numbers_.push_back(byte >= 0xe0 ? (byte & 3) - 1 : 0);
    }
    for (int body = 1 + (next() & 1); body > 0; --body) {
      if (depth < 3 && (next() & 1) != 0) {
        add_loop(depth + 1, columns);
        continue;
      }
      nodes_.push_back(
          {false, static_cast<std::uint32_t>(nodes_.size() + 1), static_cast<std::uint32_t>(numbers_.size())});
      for (std::size_t n = 0; n < (depth + 2) * columns; ++n) numbers_.push_back(number());
    }
    nodes_[me].end = static_cast<std::uint32_t>(nodes_.size());
  }

  /// 0 unless the nest is sound.
  static std::uint64_t count_of(Pattern& alone) {
    if (!fault_of(view_of(alone), 0).empty()) return 0;
    return iosig::count_of(view_of(alone), 0, {});
  }

  std::string_view bytes_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace iosig::fuzz
