#include "preload/trace/requests.h"

#include "host/run_isolated.h"
#include "preload/hooks/user_memory.h"

namespace iosig::preload::trace {

void RequestBatch::note(Call call, int fd, std::int64_t offset, std::int64_t length) {
  if (const auto place = static_cast<std::size_t>(count_++); place < requests_.size()) {
    const Subject subject = subject_of(fd);
    requests_[place] = {.call = subject.is_left_out ? Call::none : call,
                        .fd = fd,
                        .file = subject.file,
                        .offset = offset,
                        .length = length};
  }
}

void RequestBatch::note(const iocb* request) {
  if (request == nullptr) return note(Call::none, -1, 0, 0);
  Call call = Call::none;
  std::int64_t offset = request->aio_offset;
  auto length = static_cast<std::int64_t>(request->aio_nbytes);
  switch (request->aio_lio_opcode) {
    case IOCB_CMD_PREAD:
    case IOCB_CMD_PREADV: call = Call::aio_read; break;
    case IOCB_CMD_PWRITE:
    case IOCB_CMD_PWRITEV: call = Call::aio_write; break;
    case IOCB_CMD_FSYNC:
    case IOCB_CMD_FDSYNC:
      call = Call::aio_fsync;
      offset = iosig::trace::no_offset;
      length = iosig::trace::no_length;
      break;
    default: break;
  }
  if (request->aio_lio_opcode == IOCB_CMD_PREADV || request->aio_lio_opcode == IOCB_CMD_PWRITEV) {
    const auto* const pieces = reinterpret_cast<const iovec*>(request->aio_buf);  // NOLINT(performance-no-int-to-ptr)
    const auto count = static_cast<std::size_t>(length);
    length = 0;
    if (readable_bytes(pieces, count * sizeof(iovec)) == count * sizeof(iovec))
      for (std::size_t n = 0; n < count; ++n) length += static_cast<std::int64_t>(pieces[n].iov_len);
  }
  note(call, static_cast<int>(request->aio_fildes), offset, length);
}

void RequestBatch::note(const aiocb* request) {
  const bool is_transfer = request != nullptr && request->aio_lio_opcode != LIO_NOP;
  if (!is_transfer) return note(Call::none, -1, 0, 0);
  note(request->aio_lio_opcode == LIO_READ ? Call::aio_read : Call::aio_write, request->aio_fildes, request->aio_offset,
       static_cast<std::int64_t>(request->aio_nbytes));
}

void RequestBatch::record(std::int64_t begun) const {
  const runtime::ErrnoKept kept;
  const auto noted = static_cast<std::int64_t>(requests_.size());
  for (std::int64_t n = 0; n < std::min({begun, count_, noted}); ++n) {
    const Request& request = requests_[static_cast<std::size_t>(n)];
    if (request.call == Call::none || uses[static_cast<std::uint16_t>(request.call)] != Use::record) continue;
    Recording recording(request.call,
                        {.fd = request.fd, .offset = request.offset, .length = request.length, .file = request.file});
    recording.change([&](Slot& slot) { slot.start = start_; });
    recording.end(0);
  }
  if (begun > noted && this_part->header != nullptr)
    this_part->header->lost_calls += static_cast<std::uint64_t>(begun - noted);
}

}  // namespace iosig::preload::trace
