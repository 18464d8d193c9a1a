// Compares data droppings with the checksums that their writers left.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "iosig/container/layout/closed_writers.h"
#include "iosig/container/layout/container_directory.h"
#include "iosig/container/read/content.h"

namespace iosig {

/// The checksums of the data of closed writers, for any number of reading threads. They are read at the first question.
class DataVerifier {
 public:
  explicit DataVerifier(const ContainerDirectory& directory) : directory_(directory) {}

  /// Returns the checksums of a writer's data, or nullptr if it left none or they cannot be read now. They live until
  /// forget().
  [[nodiscard]] const DataChecksums* of(std::int64_t id);
  /// Lets the next question read the records again. Not while another function runs.
  void forget() { closed_.reset(); }

 private:
  const ContainerDirectory& directory_;
  std::mutex mutex_;
  std::unique_ptr<const ClosedWriters> closed_;
};

/// Bytes of a data dropping that do not match their checksum. One of them or all may have been changed.
struct ChangedData {
  std::int64_t id = 0;  ///< the writer
  std::int64_t begin = 0, end = 0;
};

struct DataCheck {
  std::vector<ChangedData> changed;   ///< by writer and place
  std::int64_t verified_bytes = 0;    ///< that match their checksums
  std::int64_t unverified_bytes = 0;  ///< without a checksum: of active writers, or written after the last sync of a
                                      ///< killed one
};

/// Returns the message for changed data.
[[nodiscard]] std::string message_of(const ChangedData& changed, const ContainerDirectory& directory);

/// Reads all data droppings, and compares them with the checksums of closed writers, and of what killed writers had
/// synced (from `content`). What is missing at the end of a dropping is not looked at. `on_progress` receives the
/// number of bytes read so far. Fails with `system` if a dropping cannot be read.
[[nodiscard]] Result<DataCheck> check_data(const ContainerDirectory& directory, const ContainerContent& content,
                                           const std::function<void(std::int64_t)>& on_progress = {});

}  // namespace iosig
