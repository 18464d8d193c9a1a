// The target of a replay: a container or an ordinary file, written and read through the same few calls.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/container/admin/removal.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/write/container_writer.h"

namespace iosig {

enum class ReplayForm : std::uint8_t { container, traditional, plain };
[[nodiscard]] std::string_view name_of(ReplayForm form);

struct ReplayTarget {
  std::string path;
  ReplayForm form = ReplayForm::container;
  std::vector<std::string> targets;  ///< as in ContainerOptions::targets
};

/// Creates the target. Fails as `usage` if the path exists.
[[nodiscard]] Result<void> make_target(const ReplayTarget& target);
/// **Deletes** a target that make_target() created, and its data.
[[nodiscard]] Result<void> remove_target(const ReplayTarget& target);

/// Writes the target for one rank.
class ReplaySink {
 public:
  static Result<ReplaySink> open(const ReplayTarget& target);
  /// Writes all of `bytes`, or fails.
  [[nodiscard]] Result<void> write(std::int64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] Result<void> sync();
  [[nodiscard]] Result<void> close();

 private:
  ReplaySink() = default;
  std::string path_;
  Fd plain_;
  ContainerHold hold_;
  std::unique_ptr<ContainerWriter> writer_;
};

/// Reads the target for one process.
class ReplaySource {
 public:
  static Result<ReplaySource> open(const ReplayTarget& target,
                                   ContainerView::Source source = ContainerView::Source::snapshot);
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Returns the number of bytes read; fewer than requested only at the end of the file.
  [[nodiscard]] Result<std::int64_t> read(std::int64_t offset, std::span<std::byte> bytes);
  /// Null for an ordinary file.
  [[nodiscard]] const ContainerView* view() const { return view_.get(); }

 private:
  ReplaySource() = default;
  std::string path_;
  std::int64_t size_ = 0;
  Fd plain_;
  ContainerHold hold_;
  std::unique_ptr<ContainerView> view_;
};

}  // namespace iosig
