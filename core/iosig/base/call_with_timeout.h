// Calls operations that may block forever, such as access to a file system whose server is down: a process in such a
// call cannot even be killed. The call runs in a child process, which is abandoned if it takes too long.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <tl/expected.hpp>
#include <type_traits>

namespace iosig {

inline constexpr int answer_limit_ms = 3000;

/// Calls `ask` in a child process and copies `answer`, as `ask` filled it, back. Returns 0 or errno; ETIMEDOUT without
/// an answer in time or if the child died. Only for our own programs: in a host process, the child would be visible to
/// its code.
[[nodiscard]] int ask_with_timeout(std::span<std::byte> answer, const std::function<void()>& ask);

/// Returns the result of `ask()`, or errno as above.
template <class Ask>
[[nodiscard]] auto call_with_timeout(const Ask& ask) -> tl::expected<decltype(ask()), int> {
  using Answer = decltype(ask());
  static_assert(std::is_trivially_copyable_v<Answer>, "it goes through a pipe");
  Answer answer{};
  const int failure = ask_with_timeout(std::as_writable_bytes(std::span(&answer, 1)), [&] { answer = ask(); });
  if (failure != 0) return tl::unexpected(failure);
  return answer;
}

}  // namespace iosig
