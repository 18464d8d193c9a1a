// The hints of the C interface (include/iosig/iosig.h): decide from the open's mode whether it may be redirected at
// all.
//
// Any open may have a signature that says how the file will be read.
//
// The link leads to a file that does not exist yet. Only an open that creates the file and follows symbolic links works
// through such a link. All other opens are never redirected.

#include <fcntl.h>

#include "host/diagnostics.h"
#include "iosig/enact/creating.h"
#include "iosig/iosig.h"
#include "libiosig/decision.h"

using iosig::runtime::announce_reads;
using iosig::runtime::decline;
using iosig::runtime::Outcome;
using iosig::runtime::redirect;

namespace {

void hint(int dirfd, const char* path, const char* signature, bool creates) {
  announce_reads(dirfd, path, signature);
  if (creates)
    redirect(dirfd, path, signature);
  else
    decline(path, "an open of this mode makes no new file, or fails on a link");
}

}  // namespace

void iosig_open_hint(int dirfd, const char* path, int flags, const char* signature) {
  hint(dirfd, path, signature, iosig::flags_create(flags));
}

void iosig_fopen_hint(const char* path, const char* mode, const char* signature) {
  hint(AT_FDCWD, path, signature, iosig::fopen_mode_creates(mode));
}

void iosig_fstream_hint(const char* path, int openmode, const char* signature) {
  hint(AT_FDCWD, path, signature, iosig::openmode_creates(openmode));
}

int iosig_redirect(const char* path, const char* signature) {
  switch (redirect(AT_FDCWD, path, signature)) {
    case Outcome::redirected: return 1;
    case Outcome::stays: return 0;
    case Outcome::failed: return -1;
  }
  return -1;
}

const char* iosig_last_error(void) { return iosig::runtime::last_error(); }
