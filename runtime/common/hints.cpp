// The C interface, include/iosig/iosig.h: tells from how a file is opened whether it may be redirected at all.
//
// A link leads to a file that does not exist yet, so only an open that creates the file, and follows links while doing
// so, can pass through it. Everything else is left alone.

#include <fcntl.h>

#include <cstring>

#include "decision.h"
#include "iosig/iosig.h"
#include "voice.h"

using iosig::runtime::decline;
using iosig::runtime::Outcome;
using iosig::runtime::redirect;

namespace {

const char* reason_against_flags(int flags) {
  if ((flags & O_TMPFILE) == O_TMPFILE) return "O_TMPFILE gives the file no name";
  if ((flags & O_CREAT) == 0) return "without O_CREAT the open makes no new file";
  if ((flags & O_EXCL) != 0) return "O_EXCL fails on a link";
  if ((flags & O_NOFOLLOW) != 0) return "O_NOFOLLOW fails on a link";
  if ((flags & (O_PATH | O_DIRECTORY)) != 0) return "it is not opened for data";
  return nullptr;
}

const char* reason_against_mode(const char* mode) {
  if (mode == nullptr || (mode[0] != 'w' && mode[0] != 'a')) return "this mode makes no new file";
  // glibc ends the letters at a comma (",ccs=...").
  if (std::memchr(mode, 'x', std::strcspn(mode, ",")) != nullptr) return "mode x fails on a link";
  return nullptr;
}

/// The bits are libstdc++'s, so that one entry serves programs of every C++ standard.
const char* reason_against_openmode(int openmode) {
  constexpr int app = 1, in = 8, out = 16, trunc = 32, noreplace = 64;
  if ((openmode & noreplace) != 0) return "noreplace fails on a link";
  const bool creates =
      (openmode & app) != 0 ? (openmode & trunc) == 0 : (openmode & out) != 0 && (openmode & (in | trunc)) != in;
  return creates ? nullptr : "this openmode makes no new file";
}

void hint(int dirfd, const char* path, const char* signature, const char* reason_against) {
  if (reason_against != nullptr)
    decline(path, reason_against);
  else
    redirect(dirfd, path, signature);
}

}  // namespace

void iosig_open_hint(int dirfd, const char* path, int flags, const char* signature) {
  hint(dirfd, path, signature, reason_against_flags(flags));
}

void iosig_fopen_hint(const char* path, const char* mode, const char* signature) {
  hint(AT_FDCWD, path, signature, reason_against_mode(mode));
}

void iosig_fstream_hint(const char* path, int openmode, const char* signature) {
  hint(AT_FDCWD, path, signature, reason_against_openmode(openmode));
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
