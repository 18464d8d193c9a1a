#include "iosig/format/container_globs.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <string>

namespace iosig {
namespace {

bool has_wildcard(std::string_view glob) {
  for (std::size_t at = 0; (at = glob.find_first_of("*?[\\", at)) != std::string_view::npos; at += 2)
    if (glob[at] != '\\') return true;  // else the character behind it stands for itself
  return false;
}

}  // namespace

std::string escaped_glob(std::string_view path) {
  std::string glob;
  for (const char each : path) {
    if (each == '*' || each == '?' || each == '[' || each == '\\') glob += '\\';
    glob += each;
  }
  return glob;
}

bool is_shared_memory(std::string_view glob, std::string_view path) {
  constexpr std::array<const char*, 5> names = {
      "*-shm",         // SQLite, for a database in WAL mode
      "*_cid-*-*.sm",  // OMPIO, in the job's temporary directory
      "data.mdb",      // LMDB
      "lock.mdb",      // LMDB
      "*-lock",        // LMDB, with MDB_NOSUBDIR
  };
  if (!has_wildcard(glob)) return false;
  const std::string name(path.substr(path.rfind('/') + 1));
  return std::ranges::any_of(names, [&](const char* known) { return ::fnmatch(known, name.c_str(), 0) == 0; });
}

}  // namespace iosig
