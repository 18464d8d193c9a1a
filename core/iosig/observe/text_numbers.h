// Gives equal texts equal numbers, for tables whose keys are paths.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

namespace iosig::observe {

/// Texts must stay where they are. Texts that begin at one address are the same text.
class TextNumbers {
 public:
  /// Counts from 1.
  std::uint64_t of(std::string_view text) {
    const auto [known, is_new] = by_address_.try_emplace(text.data(), 0);
    if (is_new) known->second = by_text_.try_emplace(text, by_text_.size() + 1).first->second;
    return known->second;
  }
  /// 0: of() has not seen the text. `text` may be anywhere.
  [[nodiscard]] std::uint64_t find(std::string_view text) const {
    const auto known = by_text_.find(text);
    return known == by_text_.end() ? 0 : known->second;
  }

 private:
  std::unordered_map<const char*, std::uint64_t> by_address_;
  std::unordered_map<std::string_view, std::uint64_t> by_text_;
};

}  // namespace iosig::observe
