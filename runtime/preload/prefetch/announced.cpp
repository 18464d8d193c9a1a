#include "preload/prefetch/announced.h"

#include <fcntl.h>

#include <atomic>
#include <filesystem>
#include <utility>

#include "host/diagnostics.h"
#include "host/process.h"
#include "host/run_isolated.h"
#include "iosig/base/text.h"
#include "iosig/format/signature_text.h"
#include "iosig/prefetch/declared_predictors.h"
#include "preload/files/process_files.h"
#include "preload/prefetch/reads.h"

namespace iosig::preload::prefetch {
namespace {

namespace fs = std::filesystem;

/// The newest first. They stay until the process ends, so that the planner's thread, and a child made by fork(), may
/// look at them at any moment.
struct Announcement {
  std::string path;
  DeclaredReads reads;
  const Announcement* before;
};
constinit std::atomic<const Announcement*> newest{nullptr};

const Announcement* find_announcement(const std::string& path) {
  const Announcement* each = newest.load(std::memory_order_acquire);
  while (each != nullptr && each->path != path) each = each->before;
  return each;
}

/// As the planner sees the file once it is open: absolute, without symbolic links.
std::string real_path(int dirfd, const char* path) {
  std::error_code failure;
  fs::path whole = path;
  if (whole.is_relative() && dirfd != AT_FDCWD)
    whole = fs::read_symlink(fmt::format("/proc/self/fd/{}", dirfd), failure) / whole;
  const fs::path real = fs::weakly_canonical(fs::absolute(whole, failure), failure);
  return failure ? std::string() : real.string();
}

void announce(int dirfd, const char* path, const char* text) {
  const auto signature = parse_signature(text);
  if (!signature || !signature->reads) return;  // the hint says what is wrong with a signature
  std::error_code failure;
  DeclaredReads reads = *signature->reads;
  reads.file = fs::absolute(reads.file, failure).lexically_normal().string();
  const std::string real = real_path(dirfd, path);
  if (failure || real.empty()) return;
  if (const auto content = iosig::prefetch::read_declared(reads); !content)
    runtime::say_once("reads " + reads.file, content.error().message + "; prefetching without it");
  observer.begin_at_first_read();
  if (const Announcement* const known = find_announcement(real); known != nullptr && known->reads == reads) return;
  auto* const made = new Announcement{real, std::move(reads), newest.load(std::memory_order_relaxed)};
  while (!newest.compare_exchange_weak(made->before, made, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

}  // namespace

std::optional<DeclaredReads> announced_reads_of(const std::string& path) {
  const Announcement* const found = find_announcement(path);
  return found == nullptr ? std::nullopt : std::optional(found->reads);
}

}  // namespace iosig::preload::prefetch

bool iosig_expect_reads(int dirfd, const char* path, const char* signature) {
  using namespace iosig::preload;
  if (!prefetch::is_on || path == nullptr || signature == nullptr || is_inside) return false;
  const iosig::runtime::ErrnoKept kept;
  const EngineGuard inside;
  return run_isolated_step([=] {
           prefetch::announce(dirfd, path, signature);
           return 0;
         }) == 0;
}
