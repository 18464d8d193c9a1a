// Names a process of this machine for processes in other PID namespaces, and says whether it still runs.
//
// A PID identifies a process only within its PID namespace, and only until the kernel reuses the number. A process is
// therefore identified by its PID, the PID's namespace, and the clock tick at which it started:
//
//   host (initial namespace)          container (a namespace of its own)
//   PID 4711, start tick 99120   ==   PID 7, start tick 99120
//
// A process in a descendant namespace is visible in /proc under another PID; NSpid in its status and the link ns/pid
// tell which process of which namespace it is. Processes of ancestors and of siblings are invisible: they are
// `unknown`, never dead.
#pragma once

#include <cstdint>

namespace iosig {

/// A kernel namespace, identified by the file behind /proc/PID/ns/NAME. All zero: unknown.
struct NamespaceId {
  std::uint64_t device = 0, inode = 0;
  explicit operator bool() const { return inode != 0; }
  bool operator==(const NamespaceId&) const = default;
};

/// A process of the current boot. The caller compares boot ids first (base/machine.h).
struct ProcessId {
  std::int64_t pid = 0;          ///< in its own PID namespace
  std::int64_t start_ticks = 0;  ///< since boot, field 22 of /proc/PID/stat; 0: unknown
  NamespaceId pid_namespace;
};

/// A session of such processes (getsid).
struct SessionId {
  std::int64_t session = 0;      ///< in `pid_namespace`; 0: the session leader is outside that namespace
  std::int64_t start_ticks = 0;  ///< of the session leader; 0: unknown
  NamespaceId pid_namespace;     ///< of the process in the session
};

enum class Life {
  alive,
  dead,
  unknown,  ///< cannot be determined from here
};

/// Identifies this process. Allocates nothing. The first call takes a few microseconds, later ones one system call.
[[nodiscard]] ProcessId this_process();

/// Identifies the session of this process.
[[nodiscard]] SessionId this_session();

/// For a child made by fork(2) whose parent was identified: it has an identity of its own, and may have got the number
/// of an ancestor.
void forget_own_identity();

/// Returns whether this process is in the initial PID namespace, from which all processes are visible.
[[nodiscard]] bool is_in_initial_pid_namespace();

/// Returns whether this process sees the machine's own host name, not that of a container (a separate UTS namespace).
[[nodiscard]] bool has_machines_host_name();

/// Returns whether exactly this process runs; a later process with the same PID does not count. `dead` only if /proc
/// would show it.
[[nodiscard]] Life life_of(const ProcessId& process);

/// Returns `alive` while any process of the session runs, including those in descendants of the namespace. A session
/// whose leader is outside of its namespace is `unknown`.
[[nodiscard]] Life life_of(const SessionId& session);

/// Returns whether it is the PID namespace of this process.
[[nodiscard]] bool is_own_pid_namespace(const NamespaceId& pid_namespace);

}  // namespace iosig
