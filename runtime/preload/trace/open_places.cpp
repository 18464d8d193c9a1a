#include "preload/trace/open_places.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <span>

#include "host/run_isolated.h"
#include "preload/files/raw_calls.h"
#include "preload/trace/names.h"
#include "preload/trace/thread_part.h"

// _dl_find_object(3) takes no lock: a signal handler may open files. Without it, or on other processors than the one
// whose stack this file can leave, nothing is noted.
#if __GLIBC_PREREQ(2, 35) && defined(__x86_64__)
#define HAS_OBJECT_SEARCH 1
#endif

namespace iosig::preload::trace {
namespace {

constexpr int max_callers = 64;
constexpr std::uint32_t max_walks = 4096;  ///< of a thread: who opens more files has shown where

bool are_places_noted = false;

extern "C" const char __ehdr_start __attribute__((visibility("hidden")));  // where this library is loaded

// ---------------------------------------------------------------------------------- does the program have line tables?

bool read_whole(long fd, void* bytes, std::size_t count, std::uint64_t offset) {
  return ::syscall(SYS_pread64, fd, bytes, count, offset) == static_cast<long>(count);
}

/// Whether an ELF file of this machine's class has a section .debug_line. `memory` takes the section headers.
bool has_line_table(long fd, std::span<char> memory) {
  using Section = ElfW(Shdr);
  ElfW(Ehdr) head{};
  if (!read_whole(fd, &head, sizeof head, 0) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_shentsize != sizeof(Section) || head.e_shstrndx >= head.e_shnum)
    return false;
  const auto section = [&](std::size_t number) {
    Section found;
    std::memcpy(&found, memory.data() + number * sizeof found, sizeof found);
    return found;
  };
  const std::size_t bytes = head.e_shnum * sizeof(Section);
  if (bytes > memory.size() || !read_whole(fd, memory.data(), bytes, head.e_shoff)) return false;
  constexpr std::string_view wanted(".debug_line\0", 12);
  for (std::size_t n = 0; n < head.e_shnum; ++n) {
    std::array<char, wanted.size()> name{};
    const Section each = section(n);
    if (each.sh_type != SHT_PROGBITS || (each.sh_flags & SHF_ALLOC) != 0) continue;
    if (read_whole(fd, name.data(), name.size(), section(head.e_shstrndx).sh_offset + each.sh_name) &&
        std::string_view(name.data(), name.size()) == wanted)
      return true;
  }
  return false;
}

/// Whether the program has line tables of its own. The answer for the process.
enum class LineTable : std::uint8_t { unasked, absent, present };
std::atomic<LineTable> program_line_table{LineTable::unasked};

bool find_program_line_table(std::span<char> memory) {
  const long fd = sys_open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  const bool has_table = fd >= 0 && has_line_table(fd, memory);
  if (fd >= 0) sys_close(fd);
  program_line_table.store(has_table ? LineTable::present : LineTable::absent, std::memory_order_relaxed);
  return has_table;
}

#if HAS_OBJECT_SEARCH

// ------------------------------------------------------------------------------------------------------ walk the stack

bool is_of_system(const char* library) {
  return std::ranges::any_of(std::array{"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/"}, [&](const char* directory) {
    return std::strncmp(library, directory, std::strlen(directory)) == 0;
  });
}

_Unwind_Reason_Code note_caller(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<OpenWalk*>(argument);
  const std::uintptr_t address = _Unwind_GetIP(context);
  if (address == 0 || ++walk.walked > max_callers || walk.count == walk.addresses.size()) return _URC_END_OF_STACK;
  dl_find_object object{};
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  if (::_dl_find_object(reinterpret_cast<void*>(address - 1), &object) != 0) return _URC_NO_REASON;
  if (object.dlfo_map_start == &__ehdr_start || is_of_system(object.dlfo_link_map->l_name)) return _URC_NO_REASON;
  walk.hash = (walk.hash ^ address) * 0x100000001b3;  // FNV-1a
  walk.addresses[walk.count++] = address;
  return _URC_NO_REASON;
}

/// Calls function(argument) on another stack, of which `top` is the end: that of the program may be a coroutine's or a
/// signal handler's, and the unwinder needs some 6 KB. The unwinder finds its way back by the frame pointer.
extern "C" void iosig_call_on_stack(void (*function)(void*), void* argument, void* top)
    __attribute__((visibility("hidden")));
asm(R"(
  .text
  .p2align 4
  .hidden iosig_call_on_stack
  .globl iosig_call_on_stack
  .type iosig_call_on_stack, @function
iosig_call_on_stack:
  .cfi_startproc
  push %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  mov %rsp, %rbp
  .cfi_def_cfa_register %rbp
  mov %rdx, %rsp
  mov %rdi, %rax
  mov %rsi, %rdi
  call *%rax
  mov %rbp, %rsp
  pop %rbp
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size iosig_call_on_stack, . - iosig_call_on_stack
)");

void walk_stack_of_open(void* walk) { (void)_Unwind_Backtrace(note_caller, walk); }

// -------------------------------------------------------------------------------- write the facts

/// Writes a text "key=value", ended by NUL, to memory of the part: the stack may be small.
class Fact {
 public:
  Fact(std::array<char, PlaceCache::fact_bytes>& text, std::string_view key) : text_(text) { put(key); }
  void put(std::string_view added) {
    is_whole_ = is_whole_ && added.size() < text_.size() - length_;
    if (!is_whole_) return;
    std::ranges::copy(added, text_.data() + length_);
    length_ += added.size();
  }
  void put(std::uint64_t number, unsigned base) {
    std::array<char, 24> digits;
    std::size_t first = digits.size();
    do digits[--first] = "0123456789abcdef"[number % base];
    while ((number /= base) > 0);
    put({digits.data() + first, digits.size() - first});
  }
  void add_to(ThreadPart& part) {
    put(std::string_view("\0", 1));
    if (is_whole_) add_chunk(part, iosig::trace::ChunkKind::process, nullptr, 0, text_.data(), length_);
  }

 private:
  std::array<char, PlaceCache::fact_bytes>& text_;
  std::size_t length_ = 0;
  bool is_whole_ = true;
};

/// Where the code around an address is loaded, and from which file. It is written once by each thread.
void write_object(ThreadPart& part, PlaceCache& cache, std::uintptr_t address) {
  dl_find_object object{};
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  if (::_dl_find_object(reinterpret_cast<void*>(address - 1), &object) != 0) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(object.dlfo_map_start);
  if (std::ranges::find(cache.objects, begin) != cache.objects.end()) return;
  cache.objects[cache.next_object++ % cache.objects.size()] = begin;
  const char* const name = object.dlfo_link_map->l_name;
  struct stat status {};
  if (::syscall(SYS_newfstatat, AT_FDCWD, *name == '\0' ? "/proc/self/exe" : name, &status, 0) != 0) return;
  Fact fact(cache.text, "object=");
  fact.put(begin, 16);
  fact.put("\t");
  fact.put(reinterpret_cast<std::uintptr_t>(object.dlfo_map_end), 16);
  fact.put("\t");
  fact.put(object.dlfo_link_map->l_addr, 16);
  fact.put("\t");
  fact.put(static_cast<std::uint64_t>(status.st_size), 10);
  fact.put("\t");
  fact.put(static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
               static_cast<std::uint64_t>(status.st_mtim.tv_nsec),
           10);
  fact.put("\t");
  fact.put(name);
  fact.add_to(part);
}

void write_place(ThreadPart& part, PlaceCache& cache, std::uint32_t path) {
  const OpenWalk& walk = cache.walk;
  const std::uint64_t mixed = (walk.hash ^ path) * 0x9e3779b97f4a7c15;
  std::uint64_t& noted = cache.noted[(mixed >> 32) % cache.noted.size()];
  if (noted == mixed) return;
  noted = mixed;
  const std::span<const std::uintptr_t> addresses(walk.addresses.data(), walk.count);
  for (const std::uintptr_t address : addresses) write_object(part, cache, address);
  Fact fact(cache.text, "opened=");
  fact.put(path, 10);
  for (const std::uintptr_t address : addresses) {
    fact.put("\t");
    fact.put(address, 16);
  }
  fact.add_to(part);
}

#endif

}  // namespace

[[gnu::hot]] void set_open_places(bool are_noted) { are_places_noted = are_noted; }

#if HAS_OBJECT_SEARCH

[[gnu::noinline]] void note_open_place(std::uint32_t path) {
  if (!are_places_noted || path == 0 || path == left_out_path) return;
  const runtime::ErrnoKept kept;
  ThreadPart* const part = this_part;
  const LineTable known = program_line_table.load(std::memory_order_relaxed);
  if (part->limit == 0 || known == LineTable::absent) return;
  const Undisturbed undisturbed;
  PlaceCache& cache = places_of(*part);
  if (known == LineTable::unasked && !find_program_line_table(cache.section_headers)) return;
  if (cache.walk.walks >= max_walks) return;
  cache.walk = {.walks = cache.walk.walks + 1, .walked = 0, .count = 0, .hash = 0xcbf29ce484222325, .addresses = {}};
  iosig_call_on_stack(walk_stack_of_open, &cache.walk, cache.stack.data() + cache.stack.size());
  if (cache.walk.count > 0) write_place(*part, cache, path);
}

#else

void note_open_place(std::uint32_t) {}

#endif

}  // namespace iosig::preload::trace
