// The functions of others that this library calls. By default the dynamic linker finds each at its first call, which
// takes 3 KB of a stack that may be a signal handler's, and smaller. With `-z now` it would find them before the
// program is ready: where a program defines one as an IFUNC (a fast memcpy), it refuses to start. So they are found
// here, in a constructor, as the dynamic linker would find them. Those that are not found stay as they were. On other
// processors than x86-64, whose registers it keeps on the stack meanwhile, it finds them at their first calls.
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "preload/hooks/symbols.h"

namespace iosig::preload {
namespace {

#if defined(__x86_64__)

constexpr std::size_t most_slots = 512, most_versions = 64;

/// The names of the versions that this library needs, by their numbers in it. From 2.
using VersionNames = std::array<const char*, most_versions>;

[[gnu::hot]] VersionNames versions_needed(const Symbols& own) {
  VersionNames names{};
  const auto* library = own.needed;
  while (library != nullptr) {
    const auto* each = reinterpret_cast<const ElfW(Vernaux)*>(reinterpret_cast<const char*>(library) + library->vn_aux);
    for (int n = 0; n < library->vn_cnt; ++n) {
      if (each->vna_other < names.size()) names[each->vna_other] = own.names + each->vna_name;
      each = reinterpret_cast<const ElfW(Vernaux)*>(reinterpret_cast<const char*>(each) + each->vna_next);
    }
    library = library->vn_next == 0
                  ? nullptr
                  : reinterpret_cast<const ElfW(Verneed)*>(reinterpret_cast<const char*>(library) + library->vn_next);
  }
  return names;
}

/// The same versions' numbers in a library that defines them; 0: it does not.
[[gnu::hot]] std::array<ElfW(Half), most_versions> numbers_in(const Symbols& library, const VersionNames& needed) {
  std::array<ElfW(Half), most_versions> numbers{};
  const auto* each = library.defined;
  while (each != nullptr) {
    const auto* name = reinterpret_cast<const ElfW(Verdaux)*>(reinterpret_cast<const char*>(each) + each->vd_aux);
    const std::string_view text(library.names + name->vda_name);
    if ((each->vd_flags & VER_FLG_BASE) == 0)
      for (std::size_t n = 0; n < needed.size(); ++n)
        if (needed[n] != nullptr && needed[n] == text) numbers[n] = each->vd_ndx;
    each = each->vd_next == 0
               ? nullptr
               : reinterpret_cast<const ElfW(Verdef)*>(reinterpret_cast<const char*>(each) + each->vd_next);
  }
  return numbers;
}

[[gnu::hot]] void* address_of(const link_map& library, const ElfW(Sym) & symbol) {
  void* const at = reinterpret_cast<void*>(library.l_addr + symbol.st_value);  // NOLINT(performance-no-int-to-ptr)
  return ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC ? reinterpret_cast<void* (*)()>(at)() : at;
}

/// This library, if it was loaded with the program; else null: which libraries are searched for its functions is then
/// only known to the dynamic linker.
[[gnu::hot]] const link_map* find_this_library() {
  for (const link_map* each = _r_debug.r_map; each != nullptr; each = each->l_next) {
    if (each->l_ld == _DYNAMIC) return each;
    if (std::string_view(each->l_name).ends_with("/libc.so.6")) return nullptr;
  }
  return nullptr;
}

__attribute__((constructor(101), hot)) void bind_own_calls() {
  const link_map* const this_library = find_this_library();
  if (this_library == nullptr) return;
  const Symbols own = symbols_of(*this_library);
  const std::size_t count = own.jump_slot_bytes / sizeof(ElfW(Rela));
  if (own.is_bound_at_start || own.versions == nullptr || count > most_slots) return;
  const VersionNames needed = versions_needed(own);
  std::array<std::uint32_t, most_slots> hashes;
  std::array<bool, most_slots> is_bound;
  const auto symbol_of = [&](std::size_t n) { return ELF64_R_SYM(own.jump_slots[n].r_info); };
  const auto name_of = [&](std::size_t n) { return own.names + own.table[symbol_of(n)].st_name; };
  for (std::size_t n = 0; n < count; ++n) {
    is_bound[n] = ELF64_R_TYPE(own.jump_slots[n].r_info) != R_X86_64_JUMP_SLOT ||
                  (own.versions[symbol_of(n)] & ~hidden_version) >= most_versions;
    if (!is_bound[n]) hashes[n] = gnu_hash(name_of(n));
  }
  const ElfW(Addr) kernels = ::getauxval(AT_SYSINFO_EHDR);  // in the list, but not searched
  for (const link_map* each = _r_debug.r_map; each != nullptr; each = each->l_next) {
    if (kernels != 0 && each->l_addr == kernels) continue;
    const Symbols symbols = symbols_of(*each);
    if (!symbols.can_be_searched()) return;
    const auto numbers = numbers_in(symbols, needed);
    for (std::size_t n = 0; n < count; ++n) {
      if (is_bound[n]) continue;
      const ElfW(Half) number = numbers[own.versions[symbol_of(n)] & ~hidden_version];
      const auto* const found = find_in(symbols, name_of(n), hashes[n], [&](ElfW(Half) version) {
        return version == VER_NDX_GLOBAL || (number != 0 && (version & ~hidden_version) == number);
      });
      if (found == nullptr || found->st_value == 0) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      auto* const slot = reinterpret_cast<void**>(this_library->l_addr + own.jump_slots[n].r_offset);
      __atomic_store_n(slot, address_of(*each, *found), __ATOMIC_RELAXED);
      is_bound[n] = true;
    }
  }
}

#endif

}  // namespace
}  // namespace iosig::preload
