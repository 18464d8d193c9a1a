#include "iosig/format/container_globs.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <string>

namespace iosig {

bool is_shared_memory(std::string_view glob, std::string_view path) {
  constexpr std::array<const char*, 5> names = {
      "*-shm",         // SQLite, for a database in WAL mode
      "*_cid-*-*.sm",  // OMPIO, in the job's temporary directory
      "data.mdb",      // LMDB
      "lock.mdb",      // LMDB
      "*-lock",        // LMDB, with MDB_NOSUBDIR
  };
  if (glob.find_first_of("*?[") == std::string_view::npos) return false;
  const std::string name(path.substr(path.rfind('/') + 1));
  return std::ranges::any_of(names, [&](const char* known) { return ::fnmatch(known, name.c_str(), 0) == 0; });
}

}  // namespace iosig
