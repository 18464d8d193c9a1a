// _exit(2), which ends a program without its destructors, as shells end their children: what it wrote is finished here.

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "data.h"
#include "open_file.h"

namespace iosig::preload {
namespace {

[[noreturn]] void end(int status) {
  if (!is_stray_child()) {
    begin_exit();
    finish_all();
  }
  for (;;) (void)::syscall(SYS_exit_group, status);
}

}  // namespace
}  // namespace iosig::preload

extern "C" {

void _exit(int status) { iosig::preload::end(status); }
void _Exit(int status) noexcept { iosig::preload::end(status); }
}
