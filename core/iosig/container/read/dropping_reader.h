// Reads the droppings of many writers of a container. Opens each directory of droppings once.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "iosig/container/layout/container_directory.h"

namespace iosig {

/// Const functions may run in any number of threads at the same time. A dropping that does not exist is no value; so is
/// one on a target that is missing, which is a problem of the container's listing. Other failures are errors.
class DroppingReader {
 public:
  explicit DroppingReader(const ContainerDirectory& directory) : directory_(directory) {}

  [[nodiscard]] const ContainerDirectory& directory() const { return directory_; }
  /// Opens the directories of all droppings of these writers. Must precede the other functions.
  void open_directories(const std::vector<std::int64_t>& ids);

  /// Opens a dropping for reading; never follows symbolic links.
  [[nodiscard]] Result<std::optional<Fd>> open(Dropping kind, std::int64_t id) const;
  [[nodiscard]] Result<std::optional<struct stat>> status(Dropping kind, std::int64_t id) const;
  /// Returns all bytes. Fails as `system` if the dropping is not a regular file.
  [[nodiscard]] Result<std::optional<std::string>> read(Dropping kind, std::int64_t id) const;
  /// Whether both writers have the same data.
  [[nodiscard]] bool have_same_data(std::int64_t one, std::int64_t other) const;

 private:
  using Place = std::pair<std::int64_t, std::int64_t>;  ///< target and number of a directory
  [[nodiscard]] Place place_of(Dropping kind, std::int64_t id) const;
  [[nodiscard]] Result<int> directory_of(Dropping kind, std::int64_t id) const;

  const ContainerDirectory& directory_;
  std::map<Place, Result<Fd>> directories_;
};

}  // namespace iosig
