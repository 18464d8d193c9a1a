#include "preload/trace/descriptions.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "host/run_isolated.h"
#include "host/table_section.h"
#include "preload/hooks/hook.h"
#include "preload/trace/names.h"
#include "preload/trace/recorder.h"
#include "preload/trace/thread_part.h"

namespace iosig::preload::trace {

IOSIG_TABLE constinit std::array<std::atomic<Description*>, max_fds> descriptions{};
constinit Description left_out;

namespace {

/// At most one for each descriptor.
IOSIG_TABLE constinit std::array<Description, max_fds> all_descriptions{};
std::atomic<int> greatest_fd{-1};
std::atomic<unsigned> end_of_places{0};  ///< behind the last one of all_descriptions that was ever used

template <class Number>
void raise_to(std::atomic<Number>& greatest, Number number) {
  for (Number known = greatest.load(std::memory_order_relaxed);
       known < number && !greatest.compare_exchange_weak(known, number, std::memory_order_relaxed);) {
  }
}

void release(Description* description) {
  if (description != nullptr && description != &left_out)
    description->references.fetch_sub(1, std::memory_order_release);
}

void set(int fd, Description* description) {
  if (static_cast<unsigned>(fd) >= max_fds) return release(description);
  raise_to(greatest_fd, fd);
  release(descriptions[static_cast<unsigned>(fd)].exchange(description, std::memory_order_acq_rel));
}

/// Returns an unused description with one reference; the first place tried is that of the descriptor.
Description* claim(int fd) {
  for (unsigned n = 0; n < max_fds; ++n) {
    const unsigned place = (static_cast<unsigned>(fd) + n) % max_fds;
    Description& each = all_descriptions[place];
    std::uint32_t unused = 0;
    if (each.references.load(std::memory_order_relaxed) != 0 ||
        !each.references.compare_exchange_strong(unused, 1, std::memory_order_acquire))
      continue;
    raise_to(end_of_places, place + 1);
    return &each;
  }
  return &left_out;
}

}  // namespace

std::int64_t Description::ask(int fd, std::int64_t moved) {
  const int before = errno;
  const long now = ::syscall(SYS_lseek, fd, 0, SEEK_CUR);
  errno = before;
  return now < 0 ? iosig::trace::no_offset : now - std::max<std::int64_t>(moved, 0);
}

std::uint32_t opened(int fd, int flags, bool is_traced) {
  if (static_cast<unsigned>(fd) >= max_fds) return 0;
  Description* const made = is_traced ? claim(fd) : &left_out;
  if (made != &left_out) {
    made->file = next_file_id();
    made->position.store(0, std::memory_order_relaxed);
    made->asks_kernel = (flags & O_APPEND) != 0;
  }
  set(fd, made);
  return made->file;
}

void duplicated(int fd, int of) {
  if (static_cast<unsigned>(fd) >= max_fds || fd == of) return;
  Description* const known = static_cast<unsigned>(of) < max_fds
                                 ? descriptions[static_cast<unsigned>(of)].load(std::memory_order_acquire)
                                 : nullptr;
  if (known != nullptr && known != &left_out) known->references.fetch_add(1, std::memory_order_relaxed);
  set(fd, known);
}

void closed(int fd) {
  if (static_cast<unsigned>(fd) < max_fds &&
      descriptions[static_cast<unsigned>(fd)].load(std::memory_order_relaxed) != nullptr)
    set(fd, nullptr);
}

void closed_range(unsigned first, unsigned last) {
  const int greatest = greatest_fd.load(std::memory_order_relaxed);
  for (unsigned fd = first; greatest >= 0 && fd <= std::min(last, static_cast<unsigned>(greatest)); ++fd)
    closed(static_cast<int>(fd));
}

void share_descriptions() {
  for (unsigned n = 0; n < end_of_places.load(std::memory_order_relaxed); ++n) all_descriptions[n].asks_kernel = true;
}

void forget_descriptions() {
  for (int fd = 0; fd <= greatest_fd.load(std::memory_order_relaxed); ++fd)
    descriptions[static_cast<unsigned>(fd)].store(nullptr, std::memory_order_relaxed);
  for (unsigned n = 0; n < end_of_places.load(std::memory_order_relaxed); ++n)
    all_descriptions[n].references.store(0, std::memory_order_relaxed);
  share_descriptions();  // a call that has begun may still use one
}

std::uint32_t file_behind(int fd, const Description& known) {
  return known.references.load(std::memory_order_relaxed) != 0 ? known.file : description_of(fd)->file;
}

Description* ask_description(int fd) {
  if (fd < 0 || engine_fds.has(fd)) return &left_out;
  const runtime::ErrnoKept kept;
  ThreadPart* part = this_part;
  if (part->limit == 0 && !make_room(part)) return &left_out;  // in a child: what it knew was its parent's
  struct stat status {};
  if (hook::fstat(fd, &status) != 0) return &left_out;  // not open: the call will fail
  static constinit Description of_child;  // a number of its own, which is another one's in its parent's table
  const bool is_kept = !is_in_memory_of_parent();
  Description* made = &left_out;
  std::uint32_t path = 0;
  // What a pipe, a socket or a terminal carries is in no file.
  if (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) || S_ISDIR(status.st_mode)) {
    path = path_of_descriptor(fd);
    if (path != left_out_path) made = is_kept ? claim(fd) : &of_child;
  }
  if (made != &left_out) {
    made->file = next_file_id();
    made->asks_kernel = true;  // another process may share it
    const long position = hook::lseek(fd, 0, SEEK_CUR);
    made->position.store(position < 0 ? 0 : position, std::memory_order_relaxed);
    if (uses[static_cast<std::uint16_t>(Call::inherited)] == Use::record) {
      Recording recording(Call::inherited, {.fd = fd, .offset = position, .file = made->file, .path = path}, true);
      recording.end(fd);
    }
  }
  if (is_kept) set(fd, made);
  return made;
}

}  // namespace iosig::preload::trace
