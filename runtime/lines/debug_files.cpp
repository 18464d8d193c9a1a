#include "lines/debug_files.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace iosig::lines {

constinit ElfTest is_debug_file_wanted = nullptr;

namespace {

/// Returns a descriptor of a file that has this build id; -1: it has not, or is not wanted.
int open_debug_file(const std::string& path, std::span<const unsigned char> build_id) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  Elf* const elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, nullptr);
  const void* own = nullptr;
  const ssize_t length = elf == nullptr ? -1 : dwelf_elf_gnu_build_id(elf, &own);
  const bool is_it =
      length == static_cast<ssize_t>(build_id.size()) && std::memcmp(own, build_id.data(), build_id.size()) == 0;
  const bool is_wanted = is_it && (is_debug_file_wanted == nullptr || is_debug_file_wanted(*elf));
  elf_end(elf);
  if (is_wanted) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

int find_debug_file(Dwfl_Module* module, void** /*user*/, const char* /*name*/, Dwarf_Addr /*base*/, const char* file,
                    const char* link, GElf_Word /*checksum*/, char** found) {
  const unsigned char* id = nullptr;
  GElf_Addr at = 0;
  const int length = dwfl_module_build_id(module, &id, &at);
  if (length < 2) return -1;
  const std::span build_id(id, static_cast<std::size_t>(length));
  std::vector<std::string> paths = {
      fmt::format("/usr/lib/debug/.build-id/{:02x}/{:02x}.debug", id[0], fmt::join(build_id.subspan(1), ""))};
  if (file != nullptr && link != nullptr) {
    const std::string directory = std::filesystem::path(file).parent_path().string();
    for (const std::string& each : {directory, directory + "/.debug", "/usr/lib/debug" + directory})
      paths.push_back(fmt::format("{}/{}", each, link));
  }
  for (const std::string& path : paths)
    if (const int fd = open_debug_file(path, build_id); fd >= 0) {
      *found = ::strdup(path.c_str());
      return fd;
    }
  return -1;
}

}  // namespace iosig::lines
