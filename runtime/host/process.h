// Process-wide state, determined once: whether IOSIG is enabled, the storage description, and the parsed signatures of
// the program.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "iosig/base/page_cache.h"
#include "iosig/base/result.h"
#include "iosig/model/signature.h"
#include "iosig/model/storage.h"

namespace iosig::runtime {

/// Whether IOSIG is disabled: by IOSIG_DISABLE, or because the program has more privileges than its user (set-uid).
/// Such a program must not trust the user's environment.
[[nodiscard]] bool is_disabled();
/// Whether IOSIG_VERBOSE is set.
[[nodiscard]] bool is_verbose();
/// Returns the value of an environment variable; empty if it is not set or IOSIG is disabled.
[[nodiscard]] std::string_view setting(const char* variable);
/// As setting(), in memory that the program does not reach: a program that shows a title in ps(1), as PostgreSQL does,
/// overwrites the environment that it was given. Never freed; ends with NUL.
[[nodiscard]] std::string_view kept_setting(const char* variable);

/// For handlers of pthread_atfork(3) that take locks. A prepare handler calls block_signals_at_fork() first; the
/// parent's and the child's handler call restore_signals_at_fork() last. A signal handler that used a container in
/// between would wait for a lock of its own thread for ever. Calls may nest.
void block_signals_at_fork();
void restore_signals_at_fork();

/// Like say(), but prints only the first message of each topic.
void say_once(const std::string& topic, std::string_view text);

using StoragePointer = std::shared_ptr<const Storage>;
/// Returns the storage description, which is read at the first call. Fails as `bad_input` if there is none.
[[nodiscard]] Result<StoragePointer> storage_description();

/// Like ask_page_cache(), but asks at most once a second.
[[nodiscard]] PageCache page_cache();

/// Like parse_signature(), with a cache.
[[nodiscard]] Result<Signature> parsed(const char* signature);

}  // namespace iosig::runtime
