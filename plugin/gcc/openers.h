// Recognises the functions that open files: those of model/opener, C++ streams, and functions declared by the user.
#pragma once

#include <optional>

#include "gcc.h"
#include "iosig/model/opener.h"

namespace iosig::gcc {

/// Describes `function` if it opens files; empty for any other function and for NULL_TREE.
[[nodiscard]] std::optional<Opener> opener_of(tree function);

/// Adds a user's function; a later declaration of the same name replaces the earlier one.
void add_opener(Opener opener);

/// Whether `type` is a std::string or std::filesystem::path, by value or reference. Both start with a char*.
[[nodiscard]] bool is_path_object(tree type);
/// Whether `type` is libstdc++'s std::ios_base::openmode.
[[nodiscard]] bool is_openmode(tree type);

}  // namespace iosig::gcc
