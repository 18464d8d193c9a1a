// A verb's output: standard output, or a file that appears at its path when it is complete.
#pragma once

#include <string>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/result.h"

namespace iosig::cli {

/// Written to a draft in the same directory, which finish() renames. The destructor deletes a draft that is not
/// finished; a kill -9 leaves it: `.NAME.XXXXXX`. Pipes and devices are written directly.
class DraftFile {
 public:
  /// Empty or "-": standard output. An existing file keeps its mode, and is replaced where a symbolic link leads.
  [[nodiscard]] static Result<DraftFile> open(const std::string& path);
  DraftFile(DraftFile&& other) noexcept = default;
  DraftFile& operator=(DraftFile&&) = delete;
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;
  ~DraftFile();

  [[nodiscard]] Result<void> write(std::string_view bytes);
  [[nodiscard]] Result<void> finish();
  /// Whether an interruption must delete something.
  [[nodiscard]] bool has_draft() const { return !draft_.empty(); }
  /// Where temporary files belong: the directory of the file, or that of the system.
  [[nodiscard]] std::string directory() const;

 private:
  DraftFile() = default;

  std::string path_, draft_;
  Fd file_;  ///< none: standard output
};

}  // namespace iosig::cli
