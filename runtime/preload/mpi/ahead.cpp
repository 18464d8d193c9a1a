#include "preload/mpi/ahead.h"

#include <fcntl.h>

#include "preload/files/open_file.h"
#include "preload/files/opening.h"
#include "preload/hooks/hook.h"
#include "preload/names/paths.h"

namespace iosig::mpiio {

void Ahead::open(const char* path) {
  {
    const preload::EngineGuard inside;
    if (!inside || !preload::is_container_at(AT_FDCWD, path)) return;
  }
  fd_ = preload::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

std::span<const std::byte> Ahead::read(const char* path) {
  open(path);
  if (fd_ < 0) return {};
  const preload::EngineGuard inside;
  const preload::InUse file(fd_);
  if (!inside || !file) return {};
  (void)preload::run_isolated_step([&] {
    if (auto known = file->container->view().export_index_snapshot()) snapshot_ = *std::move(known);
    return 0;
  });
  if (!snapshot_.empty()) preload::set_looked_at(&*file);
  return snapshot_;
}

void Ahead::learn(const char* path, std::span<const std::byte> snapshot) {
  open(path);
  if (fd_ < 0) return;
  const preload::EngineGuard inside;
  const preload::InUse file(fd_);
  if (!inside || !file) return;
  bool is_known = false;
  (void)preload::run_isolated_step([&] {
    is_known = file->container->view().import_index_snapshot(snapshot);
    return 0;
  });
  if (is_known) preload::set_looked_at(&*file);
}

Ahead::~Ahead() {
  if (fd_ < 0) return;
  {
    const preload::EngineGuard inside;
    preload::set_looked_at(nullptr);
    (void)preload::run_isolated_step([&] {
      snapshot_ = {};
      return 0;
    });
  }
  preload::hook::close(fd_);
}

}  // namespace iosig::mpiio
