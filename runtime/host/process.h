// What this process knows, asked for once: whether IOSIG is wanted, the storage description, the signatures that its
// program has.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig::runtime {

/// IOSIG_DISABLE, or more rights than the user has (set-uid): such a program must not follow that user's environment.
[[nodiscard]] bool is_disabled();
/// IOSIG_VERBOSE.
[[nodiscard]] bool is_verbose();
/// The variable's value; empty: there is none, or IOSIG is disabled.
[[nodiscard]] std::string_view setting(const char* variable);

/// One message for each topic.
void say_once(const std::string& topic, std::string_view text);

using StoragePointer = std::shared_ptr<const Storage>;
/// Read at the first call. `bad_input`: there is none.
[[nodiscard]] Result<StoragePointer> storage_description();

/// As parse_signature, remembered.
[[nodiscard]] Result<Signature> parsed(const char* signature);

}  // namespace iosig::runtime
