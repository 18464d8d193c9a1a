#include "iosig/config/policy.h"

#include <cstdlib>

#include "iosig/format/signature_text.h"

namespace iosig {

Result<Policy> policy_for(const std::optional<Policy>& option, const Signature& wanted, const Storage& storage) {
  if (option) return *option;
  if (const char* named = ::secure_getenv("IOSIG_POLICY"); named != nullptr && named[0] != '\0') {
    const auto policy = parse_policy(named);
    if (!policy) return fail(ErrorKind::bad_input, "IOSIG_POLICY: {}", policy.error().message);
    return *policy;
  }
  if (wanted.policy) return *wanted.policy;
  return storage.policy.value_or(Policy::job);
}

}  // namespace iosig
