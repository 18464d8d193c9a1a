// A pragma's text, put together from its tokens, that knows where each byte came from. The compiler's plugin and
// `iosig check` build it alike, so that both find the same mistakes at the same places.
#pragma once

#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iosig {

/// `Place`: where a token stands, in the caller's terms.
template <class Place>
class PragmaText {
 public:
  /// `name`: where the pragma's name stands, the place of an empty text.
  explicit PragmaText(Place name) : name_(name) {}

  /// Words are set apart by one blank; punctuation joins its neighbours, so that `size-per-IO` is one name however it
  /// was cut into tokens. `spelling` is not empty.
  void append(std::string_view spelling, Place at) {
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '"'; };
    if (!text_.empty() && is_word(spelling.front()) && (is_word(text_.back()) || text_.back() == ')')) text_ += ' ';
    pieces_.push_back({text_.size(), at});
    text_ += spelling;
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] Place begin() const { return pieces_.empty() ? name_ : pieces_.front().at; }
  /// Of the token that holds this byte.
  [[nodiscard]] Place place(std::size_t byte) const {
    Place at = begin();
    for (const Piece& piece : pieces_)
      if (piece.begin <= byte) at = piece.at;
    return at;
  }

 private:
  struct Piece {
    std::size_t begin;
    Place at;
  };
  std::string text_;
  std::vector<Piece> pieces_;
  Place name_;
};

struct LostParameter {
  std::string_view name;
  std::size_t at;  ///< in the spelling
};

/// A parameter that `spelled` (the pragma's first line as it is written, behind its name) has and the text that was
/// `read` has not: a macro that happens to be called like it took it away, silently if the macro is empty.
[[nodiscard]] std::optional<LostParameter> find_lost_parameter(std::string_view spelled, std::string_view read);

}  // namespace iosig
