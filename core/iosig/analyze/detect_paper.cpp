#include "iosig/analyze/detect_paper.h"

#include <algorithm>

#include "iosig/model/nest.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {
namespace {

/// An entry of the paper's stack ps: `size` differences from `first` on, repeated `repetitions` times.
struct Unit {
  std::size_t first = 0, size = 0;
  std::uint64_t repetitions = 1;

  [[nodiscard]] std::size_t differences() const { return size * repetitions; }
};

class Algorithm1 {
 public:
  Algorithm1(std::span<const std::int64_t> vectors, const PaperOptions& options)
      : vectors_(vectors),
        columns_(options.columns),
        window_(std::max(options.window, 1u)),
        count_(vectors.size() / columns_) {
    for (std::size_t n = columns_; n < count_ * columns_; ++n)
      differences_.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(vectors[n]) -
                                                       static_cast<std::uint64_t>(vectors[n - columns_])));
  }

  Pattern pattern() {
    const std::size_t all = count_ == 0 ? 0 : count_ - 1;
    for (std::size_t at = 0; at < all;) {
      const std::size_t merged = merge(at, all);
      if (merged == 0) units_.push_back({at, 1, 1});
      at += std::max<std::size_t>(merged, 1);
    }
    PatternBuilder builder(columns_, {-1, -1, -1, -1, -1, -1, -1, -1});
    if (count_ == 0) return builder.finish();
    const bool goes_on = !units_.empty() && units_.back().size == 1 && units_.back().repetitions > 1;
    if (goes_on) ++units_.back().repetitions;
    for (const Unit& unit : units_) add(unit, builder);
    if (!goes_on) builder.add_literal(vectors_.data() + (count_ - 1) * columns_);
    return builder.finish();
  }

 private:
  [[nodiscard]] bool are_equal(std::size_t a, std::size_t b, std::size_t k) const {
    const std::int64_t* differences = differences_.data();
    return std::equal(differences + a * columns_, differences + (a + k) * columns_, differences + b * columns_);
  }

  /// Merges the smallest possible lw[1:k]. Returns k, or 0 if none can be merged.
  std::size_t merge(std::size_t at, std::size_t all) {
    const std::size_t longest = std::min({window_, at, all - at});
    auto unit = units_.rbegin();  // units from here to the end stand for `covered` differences
    std::size_t covered = 0;
    for (std::size_t k = 1; k <= longest; ++k) {
      while (covered < k && unit != units_.rend()) covered += (unit++)->differences();
      Unit& last = units_.back();
      const bool repeats = last.size == k;
      if (!repeats && covered != k) continue;
      if (!are_equal(at, at - k, k)) continue;
      if (repeats) {
        ++last.repetitions;
        return k;
      }
      units_.erase(unit.base(), units_.end());
      units_.push_back({at - k, k, 2});
      return k;
    }
    return 0;
  }

  void add(const Unit& unit, PatternBuilder& builder) {
    const std::int64_t* first = vectors_.data() + unit.first * columns_;
    if (unit.repetitions > 1) {
      const auto size = static_cast<std::uint32_t>(unit.size);
      nodes_.assign(1, {true, size + 1, 0});
      numbers_.assign(1, static_cast<std::int64_t>(unit.repetitions));
      for (std::uint32_t n = 0; n < size; ++n) {
        nodes_.push_back({false, n + 2, static_cast<std::uint32_t>(numbers_.size())});
        for (std::uint32_t column = 0; column < columns_; ++column) {
          std::uint64_t stride = 0;
          for (std::size_t m = 0; m < unit.size; ++m)
            stride += static_cast<std::uint64_t>(differences_[(unit.first + m) * columns_ + column]);
          numbers_.insert(numbers_.end(), {first[n * columns_ + column], static_cast<std::int64_t>(stride)});
        }
      }
      // Differences are modulo 2^64; a unit whose differences overflowed is not a valid nest.
      if (fault_of({nodes_.data(), numbers_.data(), columns_}, 0).empty())
        return builder.add_nest(nodes_, numbers_, unit.differences());
    }
    for (std::size_t n = 0; n < unit.differences(); ++n) builder.add_literal(first + n * columns_);
  }

  std::span<const std::int64_t> vectors_;
  std::uint32_t columns_;
  std::size_t window_, count_;
  std::vector<std::int64_t> differences_;
  std::vector<Unit> units_;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace

Pattern detect_paper(std::span<const std::int64_t> vectors, const PaperOptions& options) {
  return Algorithm1(vectors, options).pattern();
}

}  // namespace iosig
