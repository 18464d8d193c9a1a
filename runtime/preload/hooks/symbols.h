// The symbol tables of loaded libraries. Reading them takes no lock of the dynamic linker and allocates nothing.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>

namespace iosig::preload {

/// Of a library's dynamic section.
struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hashes = nullptr;    ///< DT_GNU_HASH
  const ElfW(Half) * versions = nullptr;    ///< of each symbol; null: none have any
  const ElfW(Verdef) * defined = nullptr;   ///< versions that it defines
  const ElfW(Verneed) * needed = nullptr;   ///< versions that it takes from others
  const ElfW(Rela) * jump_slots = nullptr;  ///< where it keeps the addresses of functions of others
  std::size_t jump_slot_bytes = 0;
  bool is_bound_at_start = false;

  [[nodiscard]] bool can_be_searched() const { return hashes != nullptr && table != nullptr && names != nullptr; }
};

inline constexpr ElfW(Half) hidden_version = 0x8000;  ///< another than the symbol's default

[[nodiscard]] Symbols symbols_of(const link_map& library);
[[nodiscard]] std::uint32_t gnu_hash(const char* name);

/// Returns the library's definition of a version that is wanted; null if it has none.
template <class IsWanted>
    [[nodiscard]] const ElfW(Sym) *
    find_in(const Symbols& library, const char* name, std::uint32_t hash, IsWanted is_wanted) {
  constexpr unsigned word_bits = 8 * sizeof(ElfW(Addr));
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
        (library.versions == nullptr || is_wanted(library.versions[n])) &&
        std::strcmp(library.names + symbol.st_name, name) == 0)
      return &symbol;
    if ((known & 1) != 0) return nullptr;
  }
}

/// The same for the default version.
[[nodiscard]] inline const ElfW(Sym) * find_default(const Symbols& library, const char* name, std::uint32_t hash) {
  return find_in(library, name, hash, [](ElfW(Half) version) { return (version & hidden_version) == 0; });
}

}  // namespace iosig::preload
