// The entries of traced calls, as hooks/calls.txt says (recording.inc), and those with `trace=own`.
#include <linux/close_range.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstring>

#include "preload/files/open_file.h"
#include "preload/hooks/entry.h"
#include "preload/hooks/inline.h"
#include "preload/prefetch/reads.h"
#include "preload/trace/mappings.h"
#include "preload/trace/mpi_files.h"
#include "preload/trace/open_places.h"
#include "preload/trace/requests.h"
#include "preload/trace/streams.h"
#include "preload/trace/subjects.h"
#include "preload/trace/uring.h"

namespace iosig::preload {

using iosig::trace::Call;
using prefetch::unknown;
using trace::here;

namespace {

/// Records an open. The result is a descriptor, `number(result)`; -1 if the call failed.
template <Call call, class Make, class Number>
auto open_traced(int directory, const char* path, int flags, const Make& make, const Number& number) {
  const bool is_recorded = trace::uses[static_cast<std::uint16_t>(call)] == trace::Use::record && trace::is_selected();
  trace::Recording recording(call, {.length = flags}, is_recorded);
  const auto result = make();
  const int fd = number(result);
  const int failure = errno;
  const std::uint32_t id = fd < 0 && !trace::is_readable(path, -failure) ? 0 : trace::path_at(directory, path);
  const bool is_ours = fd >= 0 && !trace::is_in_memory_of_parent();  // a vfork child's descriptors are not its parent's
  const std::uint32_t file = is_ours ? trace::opened(fd, flags, id != trace::left_out_path) : 0;
  if (id == trace::left_out_path || (!is_recorded && fd < 0)) {
    recording.cancel();
  } else {
    recording.change([&](trace::Slot& slot) {
      if (!is_recorded) slot.call = Call::inherited;  // the file's later calls may be: they need its name
      slot.path = id;
      slot.file = file;
      slot.fd = fd;
    });
  }
  recording.end(fd < 0 ? -failure : fd);
  if (fd >= 0) trace::note_open_place(id);
  errno = failure;
  return result;
}

template <class Make>
int open_descriptor(int directory, const char* path, int flags, const Make& make) {
  return open_traced<Call::open>(directory, path, flags, make, [](int fd) { return fd; });
}

/// Records a duplication: the new descriptor is the result, `of` the old one.
template <class Make>
int duplicate(int of, const Make& make) {
  const int fd = trace::on<Call::dup>(of, make);
  if (fd >= 0 && !trace::is_in_memory_of_parent()) trace::duplicated(fd, of);
  return fd;
}

/// The path of a name of shared memory, which the C library keeps as a file; set after the call, when the name is known
/// to be valid.
class SharedMemoryPath {
 public:
  void set(const char* name) {
    name += std::strspn(name, "/");
    std::memcpy(text_ + prefix_length, name, std::min(std::strlen(name), std::size_t{NAME_MAX}));
  }
  [[nodiscard]] const char* text() const { return text_; }

 private:
  static constexpr std::size_t prefix_length = sizeof "/dev/shm/" - 1;
  char text_[prefix_length + NAME_MAX + 1] = "/dev/shm/";
};

mode_t mode_of(int flags, va_list rest) { return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0; }

}  // namespace

namespace entry {

#include "recording.inc"

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  if (!trace::is_used(Call::open)) [[likely]]
    return hook::open(path, flags, mode);
  return open_descriptor(AT_FDCWD, path, flags, [&] { return hook::open(path, flags, mode); });
}
int openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  if (!trace::is_used(Call::open)) [[likely]]
    return hook::openat(directory, path, flags, mode);
  return open_descriptor(directory, path, flags, [&] { return hook::openat(directory, path, flags, mode); });
}
int creat(const char* path, mode_t mode) { return entry::open(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int __open_2(const char* path, int flags) { return entry::open(path, flags); }
int __openat_2(int directory, const char* path, int flags) { return entry::openat(directory, path, flags); }
int mkstemp(char* name) { return entry::mkostemps(name, 0, 0); }
int mkstemps(char* name, int suffix) { return entry::mkostemps(name, suffix, 0); }
int mkostemp(char* name, int flags) { return entry::mkostemps(name, 0, flags); }
int mkostemps(char* name, int suffix, int flags) {
  if (!trace::is_used(Call::open)) [[likely]]
    return hook::mkostemps(name, suffix, flags);
  return open_descriptor(AT_FDCWD, name, flags | O_RDWR | O_CREAT | O_EXCL,
                         [&] { return hook::mkostemps(name, suffix, flags); });
}
int shm_open(const char* name, int flags, mode_t mode) {
  if (!trace::is_used(Call::open)) [[likely]]
    return hook::shm_open(name, flags, mode);
  SharedMemoryPath path;
  return open_descriptor(AT_FDCWD, path.text(), flags | O_CLOEXEC | O_NOFOLLOW, [&] {
    const int fd = hook::shm_open(name, flags, mode);
    path.set(name);
    return fd;
  });
}
int shm_unlink(const char* name) {
  if (!trace::is_used(Call::unlink)) [[likely]]
    return hook::shm_unlink(name);
  SharedMemoryPath path;
  return trace::at<Call::unlink>(path.text(), [&] {
    const int failed = hook::shm_unlink(name);
    path.set(name);
    return failed;
  });
}

int dup(int fd) {
  if (!trace::is_used(Call::dup)) [[likely]]
    return hook::dup(fd);
  return duplicate(fd, [&] { return hook::dup(fd); });
}
int dup2(int fd, int to) {
  prefetch::replaced(to, fd);
  if (!trace::is_used(Call::dup)) [[likely]]
    return hook::dup2(fd, to);
  return duplicate(fd, [&] { return hook::dup2(fd, to); });
}
int dup3(int fd, int to, int flags) {
  prefetch::replaced(to, fd);
  if (!trace::is_used(Call::dup)) [[likely]]
    return hook::dup3(fd, to, flags);
  return duplicate(fd, [&] { return hook::dup3(fd, to, flags); });
}
int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  if (!trace::is_tracing) [[likely]]
    return hook::fcntl(fd, command, argument);
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
    return duplicate(fd, [&] { return hook::fcntl(fd, command, argument); });
  const int result =
      trace::is_used(Call::fcntl)
          ? trace::on<Call::fcntl>(fd, trace::here, command, [&] { return hook::fcntl(fd, command, argument); })
          : hook::fcntl(fd, command, argument);
  if (command == F_SETFL && result == 0)
    if (trace::Description* const known = trace::description_of(fd); known != &trace::left_out)
      known->asks_kernel = known->asks_kernel || (reinterpret_cast<std::intptr_t>(argument) & O_APPEND) != 0;
  return result;
}
int close_range(unsigned first, unsigned last, int flags) {
  const bool closes = (flags & CLOSE_RANGE_CLOEXEC) == 0 && !leaves_table_of_process(flags);
  if (closes) prefetch::closed_range(first, last);
  if (trace::is_tracing && closes && !trace::is_in_memory_of_parent()) trace::closed_range(first, last);
  return hook::close_range(first, last, flags);
}
void closefrom(int least) {
  prefetch::closed_range(least < 0 ? 0 : static_cast<unsigned>(least), UINT_MAX);
  if (trace::is_tracing && !trace::is_in_memory_of_parent())
    trace::closed_range(least < 0 ? 0 : static_cast<unsigned>(least), INT_MAX);
  hook::closefrom(least);
}
int chdir(const char* path) {
  if (!trace::is_tracing) [[likely]]
    return hook::chdir(path);
  trace::learn_working_directory();  // the path is formed after the call
  const int done = trace::at<Call::chdir>(path, [&] { return hook::chdir(path); });
  trace::working_directory_changed();
  return done;
}
int fchdir(int fd) {
  if (!trace::is_tracing) [[likely]]
    return hook::fchdir(fd);
  const int done =
      trace::is_used(Call::chdir) ? trace::on<Call::chdir>(fd, [&] { return hook::fchdir(fd); }) : hook::fchdir(fd);
  trace::working_directory_changed();
  return done;
}
int closedir(DIR* directory) {
  if (trace::is_tracing && directory != nullptr && !trace::is_in_memory_of_parent()) trace::closed(::dirfd(directory));
  return hook::closedir(directory);
}
int sigaltstack(const stack_t* stack, stack_t* before) {
  constexpr unsigned autodisarm = 1u << 31;  // SS_AUTODISARM of the kernel
  const int done = hook::sigaltstack(stack, before);
  if (done == 0 && stack != nullptr)  // the program's memory may be the same
    trace::hides_handlers_stack = stack == before || (static_cast<unsigned>(stack->ss_flags) & autodisarm) != 0;
  return done;
}
// These children share the program's file offsets, and no handler of pthread_atfork(3) learns of them.
pid_t _Fork() {
  if (trace::is_tracing) trace::share_descriptions();
  return hook::_Fork();
}
int system(const char* command) {
  if (trace::is_tracing) trace::share_descriptions();
  return hook::system(command);
}
FILE* popen(const char* command, const char* mode) {
  if (trace::is_tracing) trace::share_descriptions();
  return hook::popen(command, mode);
}
int pclose(FILE* stream) {
  if (trace::is_tracing && stream != nullptr && !trace::is_in_memory_of_parent())
    trace::closed(::fileno_unlocked(stream));
  return hook::pclose(stream);
}
void* mmap(void* at, size_t length, int protection, int flags, int fd, off_t offset) {
  if (!trace::is_used(Call::mmap)) [[likely]]
    return hook::mmap(at, length, protection, flags, fd, offset);
  if (fd < 0 || (flags & MAP_ANONYMOUS) != 0) {
    void* const made = hook::mmap(at, length, protection, flags, fd, offset);
    if (made != MAP_FAILED && (flags & MAP_FIXED) != 0) trace::unmapped(made, length);
    return made;
  }
  const trace::Subject subject = trace::subject_of(fd, offset, static_cast<std::int64_t>(length));
  void* const made =
      trace::record<Call::mmap>(subject, [&] { return hook::mmap(at, length, protection, flags, fd, offset); });
  if (made != MAP_FAILED) trace::mapped(made, length, subject, offset);
  return made;
}

FILE* fopen(const char* path, const char* mode) {
  if (!trace::is_used(Call::fopen)) [[likely]]
    return hook::fopen(path, mode);
  return open_traced<Call::fopen>(
      AT_FDCWD, path, trace::flags_of(mode), [&] { return hook::fopen(path, mode); },
      [](FILE* made) { return made == nullptr ? -1 : ::fileno_unlocked(made); });
}
FILE* freopen(const char* path, const char* mode, FILE* stream) {
  if (!trace::is_used(Call::freopen)) [[likely]]
    return hook::freopen(path, mode, stream);
  if (const int before = ::fileno_unlocked(stream); before >= 0) trace::closed(before);
  if (path == nullptr) return hook::freopen(path, mode, stream);
  return open_traced<Call::freopen>(
      AT_FDCWD, path, trace::flags_of(mode), [&] { return hook::freopen(path, mode, stream); },
      [](FILE* made) { return made == nullptr ? -1 : ::fileno_unlocked(made); });
}
FILE* fdopen(int fd, const char* mode) {
  if (!trace::is_tracing) [[likely]]
    return hook::fdopen(fd, mode);
  FILE* const made = trace::is_used(Call::fdopen) ? trace::on<Call::fdopen>(fd, [&] { return hook::fdopen(fd, mode); })
                                                  : hook::fdopen(fd, mode);
  if (made != nullptr && mode[0] == 'a')  // libc sets O_APPEND by a call of its own
    if (trace::Description* const known = trace::description_of(fd); known != &trace::left_out)
      known->asks_kernel = true;
  return made;
}
int fclose(FILE* stream) {
  if (!trace::is_used(Call::fclose)) [[likely]]
    return hook::fclose(stream);
  const int fd = ::fileno_unlocked(stream);
  const trace::Subject subject = fd < 0 ? trace::Subject{.is_left_out = true} : trace::subject_of(fd);
  return trace::record<Call::fclose>(subject, [&] { return hook::fclose(stream); });
}
int fprintf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int done = entry::vfprintf(stream, format, arguments);
  va_end(arguments);
  return done;
}
int __fprintf_chk(FILE* stream, int flag, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int done = entry::__vfprintf_chk(stream, flag, format, arguments);
  va_end(arguments);
  return done;
}
int fscanf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int items = entry::vfscanf(stream, format, arguments);
  va_end(arguments);
  return items;
}
int __isoc99_fscanf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int items = entry::__isoc99_vfscanf(stream, format, arguments);
  va_end(arguments);
  return items;
}
int __isoc23_fscanf(FILE* stream, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int items = entry::__isoc23_vfscanf(stream, format, arguments);
  va_end(arguments);
  return items;
}

}  // namespace entry
}  // namespace iosig::preload
