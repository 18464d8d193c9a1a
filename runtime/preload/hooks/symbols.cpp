#include "preload/hooks/symbols.h"

namespace iosig::preload {

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
      case DT_VERDEF: symbols.defined = reinterpret_cast<const ElfW(Verdef)*>(at); break;
      case DT_VERNEED: symbols.needed = reinterpret_cast<const ElfW(Verneed)*>(at); break;
      case DT_JMPREL: symbols.jump_slots = reinterpret_cast<const ElfW(Rela)*>(at); break;
      case DT_PLTRELSZ: symbols.jump_slot_bytes = each->d_un.d_val; break;
      case DT_FLAGS: symbols.is_bound_at_start |= (each->d_un.d_val & DF_BIND_NOW) != 0; break;
      case DT_FLAGS_1: symbols.is_bound_at_start |= (each->d_un.d_val & DF_1_NOW) != 0; break;
      default: break;
    }
    // NOLINTEND(performance-no-int-to-ptr)
  }
  return symbols;
}

[[gnu::hot]] std::uint32_t gnu_hash(const char* name) {
  std::uint32_t hash = 5381;
  for (; *name != '\0'; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

}  // namespace iosig::preload
