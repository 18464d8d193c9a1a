// FILE streams. glibc's stdio makes its reads and writes through internal calls that cannot be intercepted. But all
// file streams share a table of functions (the vtable _IO_file_jumps). Before its first container is open, and when the
// program is traced, the library replaces five functions in that table. This covers stdin and stdout redirected to a
// container by a shell, and streams whose descriptor is replaced later (dup2).

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "host/diagnostics.h"
#include "preload/files/answer.h"
#include "preload/files/data.h"
#include "preload/files/drained.h"
#include "preload/files/opening.h"
#include "preload/files/process_files.h"
#include "preload/hooks/entry.h"
#include "preload/hooks/full.h"
#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/names/paths.h"
#include "preload/prefetch/reads.h"
#include "preload/trace/recorder.h"

namespace iosig::preload {
namespace {

/// The part of glibc's table that is used here. It has not changed since 1999.
struct StreamCalls {
  std::array<void*, 14> others;
  ssize_t (*read)(FILE*, void*, ssize_t);
  ssize_t (*write)(FILE*, const void*, ssize_t);
  off64_t (*seek)(FILE*, off64_t, int);
  int (*close)(FILE*);
  int (*stat)(FILE*, void*);
};

StreamCalls libc_calls;
bool are_streams_tried = false, has_streams = false;

/// Whether a stream's calls go through this library: those on containers, and all while the program is traced or its
/// reads are observed.
bool is_seen(int fd) { return trace::is_tracing || prefetch::is_on || is_ours(fd); }

/// Whether no thread is cancelled in a call on the stream (fopen(3), mode "c"). The C library opens its own files so,
/// and may hold a lock meanwhile: localtime(3) reads the time zone.
bool is_uncancelled(const FILE* stream) {
  constexpr int not_cancelled = 2;  // _IO_FLAGS2_NOTCANCEL
  return (stream->_flags2 & not_cancelled) != 0;
}

/// Returns the result of `call`, a cancellation point unless the stream's calls are none.
template <class Call>
ssize_t cancelled_as(const FILE* stream, const Call& call) {
  if (!is_uncancelled(stream)) [[likely]]
    return call();
  const CancellationOff uncancelled;
  return call();
}

ssize_t stream_read(FILE* stream, void* bytes, ssize_t count) {
  if (!is_seen(stream->_fileno)) return libc_calls.read(stream, bytes, count);
  return cancelled_as(stream, [&] { return entry::read(stream->_fileno, bytes, static_cast<size_t>(count)); });
}

constexpr int error_seen = 0x20;  // _IO_ERR_SEEN

/// Lets libc write; if the storage is full, moves the file and writes the rest (hooks/full.h).
ssize_t write_ordinary(FILE* stream, const void* bytes, ssize_t count) {
  const int flags = stream->_flags;
  const ssize_t done = libc_calls.write(stream, bytes, count);
  if (done == count || !is_full(errno)) [[likely]]
    return done;
  const auto left = static_cast<size_t>(count - done);
  const ssize_t rest = write_rest(stream->_fileno, static_cast<const char*>(bytes) + done, left, at_own_offset, -1);
  if (rest <= 0) return done;
  if (done + rest == count) stream->_flags = flags;
  if (stream->_offset >= 0) stream->_offset += rest;
  return done + rest;
}

/// Like glibc's function: continues until all bytes are written, and updates the offset that the stream remembers.
ssize_t stream_write(FILE* stream, const void* bytes, ssize_t count) {
  if (!is_seen(stream->_fileno)) return write_ordinary(stream, bytes, count);
  ssize_t done = 0;
  while (done < count) {
    const ssize_t put = cancelled_as(stream, [&] {
      return entry::write(stream->_fileno, static_cast<const char*>(bytes) + done, static_cast<size_t>(count - done));
    });
    if (put < 0) {
      stream->_flags |= error_seen;
      break;
    }
    done += put;
  }
  if (stream->_offset >= 0) stream->_offset += done;
  return done;
}

off64_t stream_seek(FILE* stream, off64_t offset, int whence) {
  if (!is_seen(stream->_fileno)) return libc_calls.seek(stream, offset, whence);
  return entry::lseek(stream->_fileno, offset, whence);
}

int stream_close(FILE* stream) {
  const bool is_told = is_seen(stream->_fileno) || is_drained(stream->_fileno);
  const CancellationOff uncancelled;  // as libc's own
  return is_told ? entry::close(stream->_fileno) : libc_calls.close(stream);
}

int stream_stat(FILE* stream, void* status) {
  return is_ours(stream->_fileno) ? hook::fstat(stream->_fileno, static_cast<struct stat*>(status))
                                  : libc_calls.stat(stream, status);
}

/// Replaces the functions in both tables of libc. Does nothing and returns false if a table has an unknown layout.
bool replace_calls() {
  const std::array tables = {static_cast<StreamCalls*>(find_next_definition("_IO_file_jumps")),
                             static_cast<StreamCalls*>(find_next_definition("_IO_wfile_jumps"))};
  const std::array expected = {find_next_definition("_IO_file_read"), find_next_definition("_IO_file_write"),
                               find_next_definition("_IO_file_seek"), find_next_definition("_IO_file_close"),
                               find_next_definition("_IO_file_stat")};
  const auto functions_of = [](const StreamCalls& table) {
    return std::array{reinterpret_cast<void*>(table.read), reinterpret_cast<void*>(table.write),
                      reinterpret_cast<void*>(table.seek), reinterpret_cast<void*>(table.close),
                      reinterpret_cast<void*>(table.stat)};
  };
  if (std::ranges::find(expected, nullptr) != expected.end()) return false;
  for (const StreamCalls* table : tables)
    if (table == nullptr || functions_of(*table) != expected) return false;
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto [first, last] = std::minmax({reinterpret_cast<std::uintptr_t>(tables[0]),
                                          reinterpret_cast<std::uintptr_t>(tables[1])});  // they lie side by side
  const std::uintptr_t begin = first & ~(page - 1), length = last + sizeof(StreamCalls) - begin;
  void* const pages = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
  if (::mprotect(pages, length, PROT_READ | PROT_WRITE) != 0) return false;
  libc_calls = *tables[0];
  for (StreamCalls* table : tables) {
    table->read = stream_read;
    table->write = stream_write;
    table->seek = stream_seek;
    table->close = stream_close;
    table->stat = stream_stat;
  }
  (void)::mprotect(pages, length, PROT_READ);
  return true;
}

}  // namespace

void stand_in_for_streams() {
  if (!std::exchange(are_streams_tried, true)) has_streams = replace_calls();
}

namespace {

/// Flushes stdout if it is a container. libc flushes its streams again after this destructor; after begin_exit() each
/// of those writes completes its index at once.
__attribute__((destructor)) void finish_streams() {
  if (is_ours(::fileno_unlocked(stdout)) && ::ftrylockfile(stdout) == 0) {
    (void)::fflush_unlocked(stdout);
    ::funlockfile(stdout);
  }
  begin_exit();
  finish_all();
  start_drains(Before::exit);
}

struct Mode {
  int flags = -1;
  bool is_uncancelled = false;   ///< "c": no thread is cancelled in the stream's calls
  std::array<char, 16> plain{};  ///< the mode without the letters that only concern the descriptor
};

/// As in glibc: a stream opened with "a" starts at the end, one with "a+" at the beginning.
bool starts_at_end(const Mode& mode) { return (mode.flags & O_APPEND) != 0 && (mode.flags & O_ACCMODE) == O_WRONLY; }

Mode parse(const char* text) {
  Mode mode;
  if (text == nullptr) return mode;
  std::string_view rest(text);
  rest = rest.substr(0, rest.find(','));
  const bool updates = rest.find('+') != std::string_view::npos;
  const int access = updates ? O_RDWR : O_WRONLY;
  switch (rest.empty() ? '\0' : rest.front()) {
    case 'r': mode.flags = updates ? O_RDWR : O_RDONLY; break;
    case 'w': mode.flags = access | O_CREAT | O_TRUNC; break;
    case 'a': mode.flags = access | O_CREAT | O_APPEND; break;
    default: return mode;
  }
  if (rest.find('x') != std::string_view::npos) mode.flags |= O_EXCL;
  if (rest.find('e') != std::string_view::npos) mode.flags |= O_CLOEXEC;
  mode.is_uncancelled = rest.find('c') != std::string_view::npos;
  char* end = mode.plain.data();
  *end++ = rest.front();
  if (updates) *end++ = '+';
  if (mode.is_uncancelled) *end++ = 'c';
  return mode;
}

/// Attaches the stream `made`, which libc has opened on /dev/null, to the container's descriptor `fd`. Cancellation
/// must be off: `fd` would stay open.
FILE* lead_to(FILE* made, int fd, const Mode& mode) {
  if (made == nullptr) return nullptr;
  const int nothing = std::exchange(made->_fileno, fd);
  (void)real().close(nothing);
  made->_offset = -1;
  if (starts_at_end(mode)) (void)::fseeko(made, 0, SEEK_END);
  return made;
}

FILE* stream_of(int fd, const Mode& mode) {
  const CancellationOff uncancelled;
  if (!has_streams) {
    say_failure("this C library's streams are not known: containers are not opened by fopen");
    errno = ENOTSUP;
    return nullptr;
  }
  return lead_to(real().fopen("/dev/null", mode.plain.data()), fd, mode);
}

bool concerns_container(const char* path, const Mode& mode) {
  return path != nullptr && mode.flags >= 0 &&
         (named_descriptor(path) >= 0 || preload::concerns_container(AT_FDCWD, path, mode.flags));
}

FILE* open_stream(const char* path, const char* text) {
  const Mode mode = parse(text);
  if (!concerns_container(path, mode)) {
    FILE* const made = real().fopen(path, text);
    if (made == nullptr) (void)as_below_file(-1, AT_FDCWD, path);
    if (made != nullptr && mode.flags > 0) watch_stream(made->_fileno);
    return made;
  }
  if (!mode.is_uncancelled) ::pthread_testcancel();
  const CancellationOff uncancelled;  // the descriptor would stay open
  const int fd = open_at(AT_FDCWD, path, mode.flags, 0666);
  if (fd < 0) return nullptr;
  FILE* const made = is_ours(fd) ? stream_of(fd, mode) : real().fdopen(fd, text);
  if (made == nullptr) {
    const int failure = errno;
    (void)hook::close(fd);
    errno = failure;
  }
  return made;
}

FILE* reopen_stream(const char* path, const char* text, FILE* stream) {
  const int before = ::fileno_unlocked(stream);
  const bool was_ours = is_ours(before);
  const Mode mode = parse(text);
  const FdPath same(before);
  if (path == nullptr && was_ours) path = same.text;
  if (!concerns_container(path, mode)) {
    // libc closes or replaces the stream's descriptor through internal calls.
    if (was_ours) (void)::fflush(stream);
    if (was_ours && path != nullptr) let_go(before);
    FILE* const made = real().freopen(path, text, stream);
    if (made != nullptr) watch_stream(made->_fileno);
    return made;
  }
  ::pthread_testcancel();
  const CancellationOff uncancelled;
  if (was_ours) (void)::fflush(stream);
  const int fd = open_at(AT_FDCWD, path, mode.flags, 0666);
  const int failure = errno;
  if (was_ours) let_go(before);
  FILE* const made = real().freopen("/dev/null", mode.plain.data(), stream);
  if (fd < 0 || made == nullptr) {
    if (made != nullptr) (void)::fclose(made);
    errno = failure;
    return nullptr;
  }
  const int number = made->_fileno;
  if (hook::dup2(fd, number) != number) return nullptr;
  (void)hook::close(fd);
  made->_offset = -1;
  if (starts_at_end(mode)) (void)::fseeko(made, 0, SEEK_END);
  return made;
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

FILE* hook::fopen(const char* path, const char* mode) { return open_stream(path, mode); }
FILE* hook::freopen(const char* path, const char* mode, FILE* stream) { return reopen_stream(path, mode, stream); }
FILE* hook::fdopen(int fd, const char* text) {
  if (!is_ours(fd)) {
    watch_stream(fd);
    return real().fdopen(fd, text);
  }
  Mode mode = parse(text);
  const int flags = hook::fcntl(fd, F_GETFL), wanted = mode.flags & O_ACCMODE;
  if (mode.flags < 0 || (wanted != (flags & O_ACCMODE) && (flags & O_ACCMODE) != O_RDWR)) {
    errno = EINVAL;
    return nullptr;
  }
  if ((mode.flags & O_APPEND) != 0 && (flags & O_APPEND) == 0)
    (void)hook::fcntl(fd, F_SETFL, flags | O_APPEND);
  else
    mode.flags &= ~O_APPEND;  // as in glibc, the offset stays unchanged
  return stream_of(fd, mode);
}
