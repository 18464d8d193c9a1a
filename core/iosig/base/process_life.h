// Names a process of this machine for processes in other PID namespaces, and says whether it still runs.
//
// A PID means a process only within its PID namespace, and only until the kernel gives the number away again. So a
// process is named by its PID, the namespace that counts it, and the clock tick in which it started:
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

/// A kernel namespace, by the file behind /proc/PID/ns/NAME. All zero: not known.
struct NamespaceId {
  std::uint64_t device = 0, inode = 0;
  explicit operator bool() const { return inode != 0; }
  bool operator==(const NamespaceId&) const = default;
};

/// A process of this start of the machine. The caller compares boot ids first (base/machine.h).
struct ProcessId {
  std::int64_t pid = 0;          ///< as its own PID namespace counts
  std::int64_t start_ticks = 0;  ///< from the machine's start, field 22 of /proc/PID/stat; 0: not known
  NamespaceId pid_namespace;
};

/// A session of such processes (getsid).
struct SessionId {
  std::int64_t session = 0;      ///< as `pid_namespace` counts; 0: its leader is outside of that namespace
  std::int64_t start_ticks = 0;  ///< of its leader; 0: not known
  NamespaceId pid_namespace;     ///< of the process that belongs to it
};

enum class Life {
  alive,
  dead,
  unknown,  ///< cannot be judged from here
};

/// This process. Costs a few microseconds, allocates nothing.
[[nodiscard]] ProcessId this_process();

/// The session of this process.
[[nodiscard]] SessionId this_session();

/// Whether this process is counted by the machine's own PID namespace, from which all processes are visible.
[[nodiscard]] bool is_in_initial_pid_namespace();

/// Whether this process sees the host name of the machine itself, not one of a container (a UTS namespace of its own).
[[nodiscard]] bool has_machines_host_name();

/// The very process: another one that got its PID later is not it. `dead` only if /proc would show it.
[[nodiscard]] Life life_of(const ProcessId& process);

/// `alive` while any process of the session runs, in a descendant of the namespace too. A session whose leader is
/// outside of its namespace is `unknown`.
[[nodiscard]] Life life_of(const SessionId& session);

/// Whether it is this process's own.
[[nodiscard]] bool is_own_pid_namespace(const NamespaceId& pid_namespace);

}  // namespace iosig
