// Which policy a decision follows.
#pragma once

#include <optional>

#include "iosig/base/result.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig {

/// Returns the first of: `option` (--policy), $IOSIG_POLICY, the signature's own (which a rules file or the plugin may
/// have set), the description's key `policy`, Policy::job. Fails with `bad_input` if the variable has another value.
[[nodiscard]] Result<Policy> policy_for(const std::optional<Policy>& option, const Signature& wanted,
                                        const Storage& storage);

}  // namespace iosig
