// Which of the program's functions open files: those of model/opener, the streams of C++, and those that the user
// declared.
#pragma once

#include <optional>

#include "gcc.h"
#include "iosig/model/opener.h"

namespace iosig::gcc {

/// What `function` is if it opens files; nothing for any other function and for NULL_TREE.
[[nodiscard]] std::optional<Opener> opener_of(tree function);

/// Adds a function of the user's; a later declaration of the same name replaces the earlier one.
void add_opener(Opener opener);

/// A std::string or std::filesystem::path by value or reference. Both begin with a char*.
[[nodiscard]] bool is_path_object(tree type);
/// libstdc++'s std::ios_base::openmode.
[[nodiscard]] bool is_openmode(tree type);

}  // namespace iosig::gcc
