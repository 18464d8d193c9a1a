#include "preload/hooks/real.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>
#include <string_view>

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

/// What a library says of its symbols in its dynamic section.
struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hashes = nullptr;  ///< DT_GNU_HASH
  const ElfW(Half) * versions = nullptr;
};

[[gnu::hot]] Symbols symbols_of(const link_map& library) {
  Symbols symbols;
  for (const ElfW(Dyn)* each = library.l_ld; each->d_tag != DT_NULL; ++each) {
    // The dynamic linker has made addresses of the offsets, but for a few libraries.
    const ElfW(Addr) at = each->d_un.d_ptr < library.l_addr ? library.l_addr + each->d_un.d_ptr : each->d_un.d_ptr;
    // NOLINTBEGIN(performance-no-int-to-ptr)
    switch (each->d_tag) {
      case DT_SYMTAB: symbols.table = reinterpret_cast<const ElfW(Sym)*>(at); break;
      case DT_STRTAB: symbols.names = reinterpret_cast<const char*>(at); break;
      case DT_GNU_HASH: symbols.hashes = reinterpret_cast<const std::uint32_t*>(at); break;
      case DT_VERSYM: symbols.versions = reinterpret_cast<const ElfW(Half)*>(at); break;
      default: break;
    }
    // NOLINTEND(performance-no-int-to-ptr)
  }
  return symbols;
}

std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

/// Returns the library's definition of the default version; null if it has none.
const ElfW(Sym) * find_in(const Symbols& library, const char* name, std::uint32_t hash) {
  constexpr unsigned word_bits = 8 * sizeof(ElfW(Addr));
  constexpr ElfW(Half) hidden = 0x8000;  // another version than the default
  const std::uint32_t buckets = library.hashes[0], first = library.hashes[1], words = library.hashes[2];
  const auto* const filter = reinterpret_cast<const ElfW(Addr)*>(library.hashes + 4);
  const ElfW(Addr) word = filter[hash / word_bits % words];
  if ((word >> hash % word_bits & word >> (hash >> library.hashes[3]) % word_bits & 1) == 0) return nullptr;
  const auto* const bucket = reinterpret_cast<const std::uint32_t*>(filter + words);
  const std::uint32_t* const chain = bucket + buckets;
  std::uint32_t n = bucket[hash % buckets];
  if (n < first) return nullptr;
  for (;; ++n) {
    const std::uint32_t known = chain[n - first];  // the last bit ends the chain
    const ElfW(Sym)& symbol = library.table[n];
    if ((known | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
        (library.versions == nullptr || (library.versions[n] & hidden) == 0) &&
        std::strcmp(library.names + symbol.st_name, name) == 0)
      return &symbol;
    if ((known & 1) != 0) return nullptr;
  }
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
      if (symbols.hashes == nullptr || symbols.table == nullptr || symbols.names == nullptr) return false;
      const ElfW(Sym)* const found = find_in(symbols, name, gnu_hash(name));
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
      if (symbols.hashes == nullptr || symbols.table == nullptr || symbols.names == nullptr) break;
      if (const ElfW(Sym)* const found = find_in(symbols, name, hash); found != nullptr) {
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
