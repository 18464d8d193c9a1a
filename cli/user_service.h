// Runs a command as a transient service of the user's systemd. It belongs to no login and no batch job, so it goes on
// when they end, even where the batch system or logind kills what they leave behind.
#pragma once

#include <string>
#include <vector>

#include "iosig/base/result.h"

namespace iosig::cli {

/// Whether a systemd of this user runs and `systemd-run` is installed. Never waits for a bus that does not answer.
[[nodiscard]] bool has_user_services();

/// Starts `command`, whose first word is an absolute path, as the service `unit`, at the lowest priority, with this
/// process's IOSIG_* variables and those that say where files are. Its output is appended to `log_path`. Fails if
/// systemd refuses, or does not answer in ten seconds.
[[nodiscard]] Result<void> start_user_service(const std::string& unit, const std::vector<std::string>& command,
                                              const std::string& log_path);

/// Whether the user's services go on after the last logout (loginctl enable-linger).
[[nodiscard]] bool services_outlive_logins();

}  // namespace iosig::cli
