#include "iosig/container/shared/failures.h"

#include <cerrno>

namespace iosig {

int errno_of(const Error& error) {
  if (error.system_errno != 0 && error.kind != ErrorKind::bad_input) return error.system_errno;
  switch (error.kind) {
    case ErrorKind::infeasible: return ENOSPC;
    case ErrorKind::usage: return EINVAL;
    default: return EIO;
  }
}

int FailureLog::operator()(const Error& error) const {
  const int failure = errno_of(error);
  if (failure != EFAULT) say_(error.message);
  return failure;
}

}  // namespace iosig
