#include "preload/trace/names.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

#include "host/run_isolated.h"
#include "preload/files/open_file.h"
#include "preload/trace/recorder.h"
#include "preload/trace/thread_part.h"

namespace iosig::preload::trace {
namespace {

std::atomic<std::uint32_t> directory_changes{1};
std::string_view traced_globs;

bool matches(std::string_view glob, const char* path) {
  char text[256];
  if (glob.empty() || glob.size() >= sizeof text) return false;
  *std::copy(glob.begin(), glob.end(), text) = '\0';
  const bool is_of_names = glob.find('/') == std::string_view::npos;
  const char* const slash = std::strrchr(path, '/');
  return ::fnmatch(text, is_of_names && slash != nullptr ? slash + 1 : path, 0) == 0;
}

bool is_traced(const char* path) {
  if (traced_globs.empty()) return true;
  for (std::string_view rest = traced_globs; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (matches(rest.substr(0, end), path)) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::uint64_t hash_of(std::string_view path) {
  std::uint64_t hash = 0x9e3779b97f4a7c15;
  for (std::size_t n = 0; n < path.size(); n += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, path.data() + n, std::min<std::size_t>(8, path.size() - n));
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash + path.size();
}

/// Returns the id of a whole path; signals are blocked.
std::uint32_t id_of(ThreadPart& part, std::string_view path) {
  if (!is_traced(path.data())) return left_out_path;
  NameCache& names = names_of(part);
  const std::uint64_t hash = hash_of(path);
  NameCache::Name& name = names.names[hash % names.names.size()];
  if (name.hash != hash || name.id == 0) {
    name = {.hash = hash, .id = next_path_id()};
    iosig::trace::NameChunk head{.path = name.id};
    add_chunk(part, iosig::trace::ChunkKind::name, &head, sizeof head, path.data(), path.size());
  }
  return name.id;
}

/// Writes the directory's path and a slash to `text`; returns the end, null if it is not known.
char* put_directory(ThreadPart& part, int directory, char* text, std::size_t room) {
  if (directory == AT_FDCWD) {
    NameCache& names = names_of(part);
    const std::uint32_t changes = directory_changes.load(std::memory_order_relaxed);
    const bool is_known = names.directory_changes == changes;
    if (!is_known && is_stray_child()) {  // the cache is its parent's
      const long length = ::syscall(SYS_getcwd, text, room);
      if (length <= 0) return nullptr;
      text += length - 1;
    } else {
      if (!is_known) {
        const long length = ::syscall(SYS_getcwd, names.directory.data(), names.directory.size());
        if (length <= 0) return nullptr;
        names.directory_length = static_cast<std::uint32_t>(length - 1);
        names.directory_changes = changes;
      }
      text = std::copy_n(names.directory.data(), names.directory_length, text);
    }
  } else {
    char link[32] = "/proc/self/fd/";
    char digits[12];
    int count = 0;
    for (auto rest = static_cast<unsigned>(directory); count == 0 || rest > 0; rest /= 10)
      digits[count++] = static_cast<char>('0' + rest % 10);
    std::reverse_copy(digits, digits + count, link + 14);
    const long length = ::syscall(SYS_readlink, link, text, room - 1);
    if (directory < 0 || length <= 0) return nullptr;
    text += length;
  }
  if (text[-1] != '/') *text++ = '/';
  return text;
}

/// Calls find(part) with signals blocked, if this thread has a part.
template <class Find>
std::uint32_t with_part(Find find) {
  const runtime::ErrnoKept kept;
  ThreadPart* part = this_part;
  if (part->limit == 0 && !make_room(part)) return 0;
  const Undisturbed undisturbed;
  return find(*part);
}

}  // namespace

std::uint32_t path_at(int directory, const char* path) {
  if (path == nullptr) return 0;
  return with_part([&](ThreadPart& part) -> std::uint32_t {
    auto& text = names_of(part).path;
    char* end = text.data();
    if (*path != '/') {
      end = put_directory(part, directory, end, text.size() / 2);
      if (end == nullptr) return 0;
    }
    // The kernel reads no more of a path; what follows may not be readable.
    const char* const last = path + ::strnlen(path, PATH_MAX);
    while (last - path > 1 && path[0] == '.' && path[1] == '/') path += 2;
    end = std::copy(path, last, end);
    *end = '\0';
    return id_of(part, {text.data(), end});
  });
}

std::uint32_t path_as_said(const char* path) {
  if (path == nullptr) return 0;
  return with_part([&](ThreadPart& part) {
    char* const text = names_of(part).path.data();
    char* const end = std::copy_n(path, ::strnlen(path, PATH_MAX), text);
    *end = '\0';
    return id_of(part, {text, end});
  });
}

std::uint32_t path_of_descriptor(int fd) {
  return with_part([&](ThreadPart& part) -> std::uint32_t {
    auto& text = names_of(part).path;
    char* end = put_directory(part, fd, text.data(), text.size() - 2);
    if (end == nullptr) return 0;
    if (end - text.data() > 1) --end;  // the slash
    *end = '\0';
    return id_of(part, {text.data(), end});
  });
}

void learn_working_directory() {
  (void)with_part([](ThreadPart& part) -> std::uint32_t {
    auto& text = names_of(part).path;
    (void)put_directory(part, AT_FDCWD, text.data(), text.size() / 2);
    return 0;
  });
}

void working_directory_changed() { directory_changes.fetch_add(1, std::memory_order_relaxed); }

bool is_every_file_traced() { return traced_globs.empty(); }

[[gnu::hot]] void set_traced_globs(std::string_view globs) { traced_globs = globs; }

}  // namespace iosig::preload::trace
