#include "nest.h"

#include <algorithm>

namespace iosig::workloads {
namespace {

constexpr std::uint64_t page_bytes = 4096;

}  // namespace

std::optional<Extent> Walk::next_of_nests() {
  while (!nest_) {
    nest_ = nests_(index_++);
    if (!nest_) {
      --index_;  // stay at the end
      return std::nullopt;
    }
    turn_ = {};
    if (std::ranges::any_of(nest_->loops, [](const Loop& loop) { return loop.count == 0; })) nest_.reset();
  }
  Extent extent{nest_->offset_bytes, nest_->length_bytes, nest_->is_shared};
  for (std::size_t i = 0; i < turn_.size(); ++i) extent.offset_bytes += turn_[i] * nest_->loops[i].stride_bytes;
  std::size_t inner = turn_.size();
  while (inner > 0 && ++turn_[inner - 1] == nest_->loops[inner - 1].count) turn_[--inner] = 0;
  if (inner == 0) nest_.reset();
  return extent;
}

std::optional<Extent> Walk::next() {
  if (request_bytes_ == 0) return next_of_nests();
  if (uncut_.length_bytes == 0) {
    const auto whole = next_of_nests();
    if (!whole || whole->length_bytes == 0) return whole;
    uncut_ = *whole;
  }
  Extent piece = uncut_;
  piece.length_bytes = std::min(uncut_.length_bytes, request_bytes_ - uncut_.offset_bytes % page_bytes);
  uncut_.offset_bytes += piece.length_bytes;
  uncut_.length_bytes -= piece.length_bytes;
  return piece;
}

std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  bool is_zero = false, is_too_large = false;
  for (const std::uint64_t factor : factors) {
    is_zero = is_zero || factor == 0;
    is_too_large = is_too_large || __builtin_mul_overflow(result, factor, &result);
  }
  if (is_zero) return 0;
  return is_too_large ? UINT64_MAX : result;
}

std::uint64_t sum(std::initializer_list<std::uint64_t> terms) {
  std::uint64_t result = 0;
  for (const std::uint64_t term : terms)
    if (__builtin_add_overflow(result, term, &result)) return UINT64_MAX;
  return result;
}

}  // namespace iosig::workloads
