// Which of the program's functions open files: those of model/opener, and the streams of C++.
#pragma once

#include <optional>

#include "gcc.h"
#include "iosig/model/opener.h"

namespace iosig::gcc {

/// What `function` is if it opens files; nothing for any other function and for NULL_TREE.
[[nodiscard]] std::optional<Opener> opener_of(tree function);

}  // namespace iosig::gcc
