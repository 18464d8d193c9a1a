#include "preload/trace/process_facts.h"

#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "iosig/trace/part_bytes.h"
#include "preload/files/raw_calls.h"
#include "preload/trace/thread_part.h"

namespace iosig::preload::trace {
namespace {

utsname machine{};
std::uint64_t boot = 0;

constexpr std::size_t max_facts_bytes = 3000;
/// The program's arguments, each ended by NUL: a copy, because the program may show a title in their place. What does
/// not fit is left out.
std::array<char, max_facts_bytes> arguments{};
std::size_t arguments_bytes = 0;

/// Texts "key=value", each ended by NUL. What does not fit is left out.
class Facts {
 public:
  void add(std::string_view key, std::string_view value) {
    if (key.size() + value.size() + 2 > text_.size() - length_) return;
    for (const std::string_view piece : {key, std::string_view("="), value}) {
      std::ranges::copy(piece, text_.data() + length_);
      length_ += piece.size();
    }
    text_[length_++] = '\0';
  }
  void add_variable(std::string_view key, const char* variable) {
    if (const char* const value = std::getenv(variable); value != nullptr) add(key, value);
  }
  [[nodiscard]] std::string_view text() const { return {text_.data(), length_}; }

 private:
  std::array<char, max_facts_bytes> text_{};
  std::size_t length_ = 0;
};

template <std::size_t count>
void add_first(Facts& facts, std::string_view key, const char* const (&variables)[count]) {
  for (const char* each : variables)
    if (std::getenv(each) != nullptr) return facts.add_variable(key, each);
}

}  // namespace

void write_process_facts(ThreadPart& part) {
  // Static: the stack may be a signal handler's. A process writes its facts once.
  static constinit Facts facts;
  static std::array<char, 1024> path;
  facts = {};
  const long length = ::syscall(SYS_readlink, "/proc/self/exe", path.data(), path.size());
  if (length > 0) facts.add("program", {path.data(), static_cast<std::size_t>(length)});
  const long directory = ::syscall(SYS_getcwd, path.data(), path.size());
  if (directory > 1) facts.add("directory", {path.data(), static_cast<std::size_t>(directory - 1)});
  add_first(facts, "rank", iosig::trace::rank_variables);
  add_first(facts, "size", iosig::trace::size_variables);
  for (const char* each : iosig::trace::job_variables) facts.add_variable(each, each);
  for (std::size_t at = 0; at < arguments_bytes;) {
    const std::string_view argument(arguments.data() + at);
    facts.add("argument", argument);
    at += argument.size() + 1;
  }
  add_chunk(part, iosig::trace::ChunkKind::process, nullptr, 0, facts.text().data(), facts.text().size());
}

bool is_first_rank() {
  for (const char* each : iosig::trace::rank_variables)
    if (const char* const rank = std::getenv(each); rank != nullptr) return std::string_view(rank) == "0";
  return true;
}

std::string_view host_name() { return machine.nodename; }
std::uint64_t boot_number() { return boot; }

void remember_machine(int count, char** given) {
  for (int n = 0; n < count && given[n] != nullptr; ++n) {
    const std::size_t bytes = std::strlen(given[n]) + 1;
    if (bytes > arguments.size() - arguments_bytes) continue;
    std::memcpy(arguments.data() + arguments_bytes, given[n], bytes);
    arguments_bytes += bytes;
  }
  (void)::uname(&machine);
  std::array<char, 40> text{};
  const long fd = sys_open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)::syscall(SYS_read, fd, text.data(), text.size() - 1);
  sys_close(fd);
  boot = iosig::trace::boot_number({text.data(), text.size()});
}

}  // namespace iosig::preload::trace
