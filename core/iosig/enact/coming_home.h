// Adds up what will be brought home to each file system: ten streams of 8 GB may each fit at home, but not all.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>

#include "iosig/enact/journal_directory.h"

namespace iosig {

class ComingHome {
 public:
  /// Adds every redirect of the journal that finalize will bring home. Adds nothing if a file system does not answer in
  /// time (base/call_with_timeout).
  void add(const Journal& journal);
  /// Adds a stream whose link lies on `home`: its totalsize; without one, the size of the data at `destination`.
  /// Streams that are temporary, sealed, or may rest where they are add nothing.
  void add(dev_t home, const Signature& signature, const std::string& destination);

  [[nodiscard]] std::uint64_t bytes_to(dev_t home) const;

 private:
  void add(dev_t home, std::uint64_t bytes);

  std::map<dev_t, std::uint64_t> bytes_;
};

}  // namespace iosig
