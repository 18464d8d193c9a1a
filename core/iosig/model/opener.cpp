#include "iosig/model/opener.h"

#include <fcntl.h>

#include <array>

namespace iosig {
namespace {

constexpr int creat_flags = O_CREAT | O_WRONLY | O_TRUNC;
using enum OpenInterface;

}  // namespace

std::span<const Opener> known_openers() {
  static const std::array openers = {
      Opener{.name = "open", .interface = open, .path = 0, .mode = 1, .permissions = 2},
      Opener{.name = "open64", .interface = open, .path = 0, .mode = 1, .permissions = 2},
      Opener{.name = "openat", .interface = open, .path = 1, .mode = 2, .dirfd = 0, .permissions = 3},
      Opener{.name = "openat64", .interface = open, .path = 1, .mode = 2, .dirfd = 0, .permissions = 3},
      Opener{.name = "creat", .interface = open, .path = 0, .mode_bits = creat_flags, .permissions = 1},
      Opener{.name = "creat64", .interface = open, .path = 0, .mode_bits = creat_flags, .permissions = 1},
      Opener{.name = "fopen", .interface = fopen, .path = 0, .mode = 1},
      Opener{.name = "fopen64", .interface = fopen, .path = 0, .mode = 1},
      Opener{.name = "freopen", .interface = fopen, .path = 0, .mode = 1},
      Opener{.name = "freopen64", .interface = fopen, .path = 0, .mode = 1},
  };
  return openers;
}

}  // namespace iosig
