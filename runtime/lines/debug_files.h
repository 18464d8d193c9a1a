// Separate debug files of programs and libraries, on this machine alone: no server on the network is asked.
#pragma once

#include <elfutils/libdwfl.h>

namespace iosig::lines {

/// Whether an ELF file with debug information is worth reading. Null: each is.
using ElfTest = bool (*)(Elf& elf);
extern ElfTest is_debug_file_wanted;

/// Finds a module's separate debug file, as dwfl_standard_find_debuginfo() does (Dwfl_Callbacks).
int find_debug_file(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, const char* file,
                    const char* link, GElf_Word checksum, char** found);

}  // namespace iosig::lines
