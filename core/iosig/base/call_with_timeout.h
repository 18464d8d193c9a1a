// Asks what may never be answered, such as a file system whose server is gone: whoever touches it hangs, and cannot
// even be killed. A child process asks, and is left behind if it takes too long.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <tl/expected.hpp>
#include <type_traits>

namespace iosig {

inline constexpr int answer_limit_ms = 3000;

/// Fills `answer` by `ask`, called in a child process. 0, or errno: ETIMEDOUT without an answer in time. For programs
/// of our own: a child in somebody else's process would be seen by it.
[[nodiscard]] int answer_in_time(std::span<std::byte> answer, const std::function<void()>& ask);

/// What `ask()` returns, or errno as above.
template <class Ask>
[[nodiscard]] auto call_with_timeout(const Ask& ask) -> tl::expected<decltype(ask()), int> {
  using Answer = decltype(ask());
  static_assert(std::is_trivially_copyable_v<Answer>, "it goes through a pipe");
  Answer answer{};
  const int failure = answer_in_time(std::as_writable_bytes(std::span(&answer, 1)), [&] { answer = ask(); });
  if (failure != 0) return tl::unexpected(failure);
  return answer;
}

}  // namespace iosig
