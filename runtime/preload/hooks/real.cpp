#include "preload/hooks/real.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>
#include <string_view>

#include "preload/hooks/symbols.h"
#include "preload/mpi/library.h"

namespace iosig::preload {
namespace {

/// The last library when the program started. The list of libraries is read up to here: those that come later may go.
std::atomic<const link_map*> last_library{nullptr};

__attribute__((constructor(101))) void remember_last_library() {
  const link_map* last = _r_debug.r_map;
  while (last != nullptr && last->l_next != nullptr) last = last->l_next;
  last_library.store(last, std::memory_order_relaxed);
}

/// Whether a function of glibc starts as glibc's does, and reaches its system call soon: `mov $number, %eax; syscall`.
bool makes_system_call([[maybe_unused]] const void* function) {
#if defined(__x86_64__)
  using namespace std::string_view_literals;
  std::string_view code(static_cast<const char*>(function), 32);
  if (constexpr auto endbr64 = "\xf3\x0f\x1e\xfa"sv; code.starts_with(endbr64)) code.remove_prefix(endbr64.size());
  // `cmpb $0, __libc_single_threaded(%rip)`, or `mov %fs:24, %eax`. A patch begins with a jump.
  if (!code.starts_with("\x80\x3d"sv) && !code.starts_with("\x64\x8b\x04\x25"sv)) return false;
  return code.find("\0\0\0\x0f\x05"sv) != code.npos || code.find("\x31\xc0\x0f\x05"sv) != code.npos;
#else
  return false;
#endif
}

}  // namespace

bool is_system_call_of_libc(const char* name, const void* definition) {
  const link_map* const last = last_library.load(std::memory_order_relaxed);
  for (const link_map* each = _r_debug.r_map; each != nullptr; each = each->l_next) {
    if (std::string_view(each->l_name).ends_with("/libc.so.6")) {
      const Symbols symbols = symbols_of(*each);
      if (!symbols.can_be_searched()) return false;
      const ElfW(Sym)* const found = find_default(symbols, name, gnu_hash(name));
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      return found != nullptr && reinterpret_cast<const void*>(each->l_addr + found->st_value) == definition &&
             makes_system_call(definition);
    }
    if (each == last) break;
  }
  return false;
}

void* find_in_late_library(const char* library, const char* name) {
  void* const loaded = ::dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return nullptr;
  void* const found = ::dlsym(loaded, name);
  ::dlclose(loaded);
  return found;
}

[[gnu::hot]] void* find_next_definition(const char* name) {
  const std::uint32_t hash = gnu_hash(name);
  const link_map* const last = last_library.load(std::memory_order_relaxed);
  bool is_behind = false;
  for (const link_map* each = _r_debug.r_map; each != nullptr; each = each->l_next) {
    if (is_behind) {
      const Symbols symbols = symbols_of(*each);
      if (!symbols.can_be_searched()) break;
      if (const ElfW(Sym)* const found = find_default(symbols, name, hash); found != nullptr) {
        if (ELF64_ST_TYPE(found->st_info) == STT_GNU_IFUNC) break;
        return reinterpret_cast<void*>(each->l_addr + found->st_value);  // NOLINT(performance-no-int-to-ptr)
      }
    }
    is_behind = is_behind || each->l_ld == _DYNAMIC;
    if (each == last) break;
  }
  if (std::strstr(name, "io_uring_") != nullptr) {
    if (void* const found = ::dlsym(RTLD_NEXT, name); found != nullptr) return found;
    return find_in_late_library("liburing.so.2", name);
  }
  if (std::strncmp(name, "MPI_", 4) == 0 || std::strncmp(name, "PMPI_", 5) == 0) return mpiio::function_behind(name);
  return ::dlsym(RTLD_NEXT, name);
}

}  // namespace iosig::preload
