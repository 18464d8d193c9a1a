// How requests reach the trace of a mount. add_tracing() puts a handler before each of the others that begins the
// record of the request; the linker puts a function before each fuse_reply_...() (--wrap, see CMakeLists.txt) that ends
// it, so that it is complete before the program goes on. The handlers in between know nothing of it, except for those
// that answer on another thread.
//
// Not recorded are requests for which no program waits: FORGET, RELEASE and RELEASEDIR, which the kernel sends when the
// last descriptor is gone. close(2) of each descriptor is a request of its own, FLUSH.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include "tracer.h"

namespace iosig::fuse {

/// Puts the recording handlers before those that are there. Only for a mount with a tracer: without it, requests cost
/// nothing more.
void add_tracing(fuse_lowlevel_ops& all);

/// The record of the request that this thread handles.
class TracedRequest {
 public:
  /// Takes it from this thread, which will not answer.
  [[nodiscard]] static TracedRequest take();
  /// Gives it to this thread, which answers next.
  static void put(TracedRequest request);
  /// Corrects the offset, which the handler found out.
  static void set_offset(std::int64_t offset);

  Tracer* tracer = nullptr;
  Tracer::Request request;
  fuse_file_info* opens = nullptr;  ///< of a request that opens a file: it has the handle when it is answered
  Subject subject;                  ///< of such a request
};

}  // namespace iosig::fuse
