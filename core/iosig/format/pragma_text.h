// The text of a pragma, assembled from its tokens with the place of each byte. The compiler's plugin and `iosig check`
// use the same code and thus report the same mistakes at the same places.
#pragma once

#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace iosig {

/// `Place`: the place of a token, in the caller's terms.
template <class Place>
class PragmaText {
 public:
  /// `name`: the place of the pragma's name, used for an empty text.
  explicit PragmaText(Place name) : name_(name) {}

  /// Appends a token. Words are separated by one blank; punctuation joins its neighbours, which makes `size-per-IO` one
  /// name however it was tokenised. `spelling` must not be empty.
  void append(std::string_view spelling, Place at) {
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '"'; };
    if (!text_.empty() && is_word(spelling.front()) && (is_word(text_.back()) || text_.back() == ')')) text_ += ' ';
    pieces_.push_back({text_.size(), at});
    text_ += spelling;
  }

  /// Appends a token with the blanks that the source has; of several, one. For texts that become code: `a - -b`.
  void append_as_spelled(std::string_view spelling, Place at, bool after_blank) {
    if (!text_.empty() && after_blank) text_ += ' ';
    pieces_.push_back({text_.size(), at});
    text_ += spelling;
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] Place begin() const { return pieces_.empty() ? name_ : pieces_.front().at; }
  /// Returns the place of the token that contains this byte.
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
  std::size_t at;  ///< in the assembled text
};

/// Returns a parameter that is in `spelled` (the pragma's first line in the source, after its name) but not in `read`:
/// a macro of the same name replaced it, silently if the macro is empty.
[[nodiscard]] std::optional<LostParameter> find_lost_parameter(std::string_view spelled, std::string_view read);

}  // namespace iosig
