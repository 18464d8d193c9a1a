#include "ahead.h"

#include <fcntl.h>

#include "preload/open_file.h"
#include "preload/opening.h"
#include "preload/paths.h"
#include "preload/program.h"

namespace iosig::mpiio {

void Ahead::open(const char* path) {
  {
    const preload::Inside inside;
    if (!inside || !preload::is_container_at(AT_FDCWD, path)) return;
  }
  fd_ = preload::open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

std::span<const std::byte> Ahead::read(const char* path) {
  open(path);
  if (fd_ < 0) return {};
  const preload::Inside inside;
  const preload::InUse file(fd_);
  if (!inside || !file) return {};
  (void)preload::as_guest([&] {
    if (auto known = file->container->knowledge()) knowledge_ = *std::move(known);
    return 0;
  });
  if (!knowledge_.empty()) preload::set_looked_at(&*file);
  return knowledge_;
}

void Ahead::learn(const char* path, std::span<const std::byte> knowledge) {
  open(path);
  if (fd_ < 0) return;
  const preload::Inside inside;
  const preload::InUse file(fd_);
  if (!inside || !file) return;
  bool is_known = false;
  (void)preload::as_guest([&] {
    is_known = file->container->take_knowledge(knowledge);
    return 0;
  });
  if (is_known) preload::set_looked_at(&*file);
}

Ahead::~Ahead() {
  if (fd_ < 0) return;
  {
    const preload::Inside inside;
    preload::set_looked_at(nullptr);
    (void)preload::as_guest([&] {
      knowledge_ = {};
      return 0;
    });
  }
  program_close(fd_);
}

}  // namespace iosig::mpiio
