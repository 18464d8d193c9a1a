// How batches of asynchronous requests are recorded (hooks/calls.txt, `trace=`): the call, and below it each request
// that it has begun, as aio_read, aio_write or aio_fsync.
//
// Requests are read before the call: another thread may free each as soon as it has completed.
#pragma once

#include <aio.h>
#include <linux/aio_abi.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "preload/trace/subjects.h"

namespace iosig::preload::trace {

/// The first requests of a batch. Further ones count as lost: this is on the program's stack.
class RequestBatch {
 public:
  void note(const iocb* request);
  void note(const aiocb* request);
  /// Records the first `begun` requests.
  void record(std::int64_t begun) const;

 private:
  struct Request {
    Call call;  ///< none: it is left out
    std::int32_t fd;
    std::uint32_t file;
    std::int64_t offset, length;
  };
  void note(Call call, int fd, std::int64_t offset, std::int64_t length);

  std::uint64_t start_ = now();
  std::int64_t count_ = 0;
  std::array<Request, 64> requests_;
};

/// Makes the call and records it and its requests. `result(returned)` is its result for the trace, `begun(returned)`
/// the number of requests that it has begun.
template <Call call, class Request, class Make, class Convert, class Count>
[[nodiscard]] int batch(long count, Request* const* requests, const Make& make, const Convert& result,
                        const Count& begun) {
  RequestBatch noted;
  for (long n = 0; n < count && requests != nullptr; ++n) noted.note(requests[n]);
  const auto make_and_record = [&] {
    const int returned = make();
    noted.record(begun(returned));
    return returned;
  };
  if (uses[static_cast<std::uint16_t>(call)] != Use::record) return make_and_record();
  Recording recording(call, {.length = count});
  const int returned = make_and_record();
  recording.end(result(returned));
  return returned;
}

/// io_submit(2) by libaio, which returns -errno.
template <Call call, class Make>
[[nodiscard]] int submission(long count, iocb** requests, const Make& make) {
  return batch<call>(
      count, requests, make, [](int returned) { return std::int64_t{returned}; },
      [](int returned) { return std::int64_t{returned}; });
}

/// lio_listio(3).
template <Call call, class Make>
[[nodiscard]] int list(int count, aiocb* const* requests, const Make& make) {
  return batch<call>(
      count, requests, make, [](int returned) { return as_result(returned); },
      [count](int returned) { return returned == 0 ? std::int64_t{count} : 0; });
}

}  // namespace iosig::preload::trace
