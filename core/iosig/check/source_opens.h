// Finds the call that a `#pragma sig` refers to, from tokens alone: the open in the statement, declaration or
// controlling expression that follows it immediately. Uses the compiler plugin's rules, without the compiler's types.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "iosig/check/source_tokens.h"
#include "iosig/model/opener.h"

namespace iosig {

/// What follows a pragma.
struct FollowingOpens {
  std::vector<SourceToken> calls;  ///< in source order: the function's name, or that of the constructed stream
  bool may_open = false;           ///< calls open() of an object that may be a stream, but whose type is not visible
  bool pragma_follows = false;     ///< another `#pragma sig` comes first
};

/// The scopes, streams and openers of one source.
class SourceOpens {
 public:
  /// `tokens` and `own` (the user's openers, in addition to known_openers()) must outlive this object. `max_work`:
  /// limit for steps that take more than linear time, in units of SourceWork.
  SourceOpens(const SourceTokens& tokens, bool is_cxx, std::span<const Opener> own, std::size_t max_work);

  /// Returns whether the token is among statements, as opposed to declarations of a file, namespace or class.
  [[nodiscard]] bool is_in_function(std::size_t token) const { return scope_[token] == Scope::block; }
  [[nodiscard]] FollowingOpens after(std::size_t pragma);
  /// Returns whether the limit was exceeded; then results of is_in_function and after are not reliable.
  [[nodiscard]] bool is_cut() const { return work_.is_spent(); }

 private:
  enum class Scope : unsigned char { declarations, block, initialiser };

  [[nodiscard]] bool is(std::size_t at, std::string_view text) const {
    return at < tokens_.size() && tokens_[at].is(text);
  }
  [[nodiscard]] bool is_word(std::size_t at) const {
    return at < tokens_.size() && tokens_[at].kind == SourceToken::Kind::word;
  }
  bool spend(std::size_t steps) { return work_.spend(steps * SourceWork::token); }

  void match_brackets();
  [[nodiscard]] bool begins_lambda(std::size_t i) const;
  void find_lambdas();
  void find_scopes();
  void note_body(std::size_t brace, std::size_t head, Scope scope, bool in_function);
  struct Head;
  [[nodiscard]] Head read_head(std::size_t begin, std::size_t brace) const;
  [[nodiscard]] std::size_t end_of_template_parameters(std::size_t at, std::size_t end) const;
  [[nodiscard]] Scope scope_of_brace(std::size_t brace, std::size_t begin, Scope around, bool in_parentheses);
  [[nodiscard]] bool has_member_list(std::size_t begin, std::size_t end) const;
  [[nodiscard]] bool is_nested_function(std::size_t brace);
  void find_streams();
  void note_derived_type(std::size_t name);
  void note_names_before(std::size_t type);
  void find_stream_variables(std::size_t type);

  [[nodiscard]] std::size_t after_labels(std::size_t at);
  [[nodiscard]] std::size_t end_of_statement(std::size_t at, int depth);
  [[nodiscard]] std::size_t end_of_simple_statement(std::size_t at);
  [[nodiscard]] std::size_t after_condition(std::size_t keyword) const;
  void collect(std::size_t begin, std::size_t end, bool skip_bodies, FollowingOpens& found);
  [[nodiscard]] std::size_t first_of_name(std::size_t last);
  [[nodiscard]] bool is_own(std::string_view name, bool is_member) const;
  void look_at_word(std::size_t at, FollowingOpens& found);
  void look_at_stream(std::size_t type, FollowingOpens& found);
  [[nodiscard]] bool is_declared_here(std::size_t name);
  [[nodiscard]] bool opens_a_file(std::size_t bracket);
  [[nodiscard]] std::size_t after_type(std::size_t type);

  const std::vector<SourceToken>& tokens_;
  bool is_cxx_;
  std::span<const Opener> own_;
  std::vector<std::size_t>
      partner_;               ///< of each bracket; for an unmatched one and for other tokens: the number of tokens
  std::vector<Scope> scope_;  ///< of each token
  std::set<std::size_t> lambda_bodies_, function_bodies_, class_bodies_, namespace_bodies_;  ///< their opening braces
  std::set<std::string_view> stream_types_, derived_types_, stream_variables_;
  std::set<std::string_view> own_constructors_;  ///< the types of `io::Writer::Writer`
  SourceWork work_;
};

}  // namespace iosig
