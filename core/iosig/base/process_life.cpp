#include "iosig/base/process_life.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "iosig/base/files.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"

namespace iosig {
namespace {

// The initial namespaces have fixed inode numbers (include/linux/proc_ns.h) on every machine.
constexpr std::uint64_t initial_pid_namespace = 0xEFFFFFFC, initial_time_namespace = 0xEFFFFFFA,
                        initial_uts_namespace = 0xEFFFFFFE;
constexpr std::size_t max_levels = 33;  // of PID namespaces: the kernel's MAX_PID_NS_LEVEL plus the initial one

/// A path in /proc, built without allocation.
struct ProcPath {
  std::array<char, 64> text;
  ProcPath(std::string_view process, const char* name) {
    *fmt::format_to_n(text.data(), text.size() - 1, "/proc/{}/{}", process, name).out = '\0';
  }
};

std::string_view digits(std::array<char, 24>& space, std::int64_t number) {
  return {space.data(), static_cast<std::size_t>(fmt::format_to_n(space.data(), space.size(), "{}", number).size)};
}

NamespaceId namespace_of(const struct stat& status) { return {status.st_dev, status.st_ino}; }

/// Returns nothing if the process is gone or this user may not read its namespaces.
std::optional<NamespaceId> namespace_at(std::string_view process, const char* link) {
  struct stat status {};
  if (::stat(ProcPath(process, link).text.data(), &status) != 0) return {};
  return namespace_of(status);
}

/// Returns whether this process uses the initial time namespace. Kernels without time namespaces have a single clock
/// and no such link.
bool has_machines_clock() {
  struct stat status {};
  return ::stat("/proc/self/ns/time", &status) != 0 ? errno == ENOENT : status.st_ino == initial_time_namespace;
}

/// Returns the process's stat, or "" if it is gone or hidden. The second field, the command name, may contain blanks
/// and parentheses.
std::string_view stat_of(std::string_view process, std::array<char, 2048>& space) {
  const Fd file(::open(ProcPath(process, "stat").text.data(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? ::read(file.get(), space.data(), space.size()) : -1;
  return {space.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

/// Returns whether the process has ended, and only its parent has not asked for its status yet.
bool is_zombie(std::string_view process) {
  std::array<char, 2048> space;
  const std::string_view stat = stat_of(process, space);
  const std::size_t at = stat.rfind(") ");
  return at != std::string_view::npos && (stat.substr(at + 2).starts_with('Z') || stat.substr(at + 2).starts_with('X'));
}

/// Returns field 22 of the process's stat, or nothing if it is gone or hidden.
std::optional<std::int64_t> start_of(std::string_view process) {
  std::array<char, 2048> space;
  const std::string_view stat = stat_of(process, space);
  std::size_t at = stat.rfind(')');
  for (int field = 2; field < 22 && at != std::string_view::npos; ++field) at = stat.find(' ', at + 1);
  std::int64_t ticks = 0;
  if (at == std::string_view::npos) return {};
  const char* const begin = stat.data() + at + 1;
  return std::from_chars(begin, stat.data() + stat.size(), ticks).ec == std::errc{} ? std::optional(ticks)
                                                                                    : std::nullopt;
}

/// The PIDs and session ids of one process in each namespace, from that of /proc down to its own.
struct Levels {
  std::array<std::int64_t, max_levels> pids{}, sessions{};
  std::size_t count = 0;

  [[nodiscard]] std::int64_t pid() const { return count == 0 ? 0 : pids[count - 1]; }
};

std::size_t read_numbers(std::string_view status, std::string_view key, std::array<std::int64_t, max_levels>& numbers) {
  std::size_t at = status.find(key), count = 0;
  if (at == std::string_view::npos) return 0;
  status = status.substr(at + key.size());
  for (const std::string_view word : words_of(status.substr(0, status.find('\n')))) {
    const auto number = parse_count<std::uint32_t>(word);
    if (!number || count == max_levels) return 0;
    numbers[count++] = *number;
  }
  return count;
}

/// Returns nothing if the process is gone or hidden.
std::optional<Levels> levels_of(std::string_view process) {
  const auto status = read_file(ProcPath(process, "status").text.data());
  if (!status) return {};
  Levels levels;
  levels.count = read_numbers(*status, "\nNSpid:", levels.pids);
  if (read_numbers(*status, "\nNSsid:", levels.sessions) != levels.count) levels.count = 0;
  return levels;
}

/// Returns whether /proc was mounted with hidepid, which hides other users' processes.
bool proc_hides_processes() {
  const auto mounts = read_file("/proc/self/mountinfo");
  if (!mounts) return true;
  bool hides = false;
  for (const std::string_view line : split(*mounts, '\n')) {
    const auto words = words_of(line);
    if (words.size() < 5 || words[4] != "/proc") continue;
    const std::size_t option = line.rfind("hidepid=");  // the topmost mount on /proc counts
    hides = option != std::string_view::npos && !line.substr(option + 8).starts_with('0') &&
            !line.substr(option + 8).starts_with("off");
  }
  return hides;
}

/// What this process can see of other PID namespaces.
struct View {
  NamespaceId own;         ///< needed for every decision
  std::size_t levels = 0;  ///< of this process, from the namespace of /proc on; 1: /proc shows our own namespace
};

View look_around() {
  View view;
  if (const auto own = namespace_at("self", "ns/pid")) view.own = *own;
  if (view.own.inode == initial_pid_namespace)
    view.levels = 1;  // it has no ancestor to which /proc could belong
  else if (const auto levels = levels_of("self"))
    view.levels = levels->count;
  return view;
}

/// Calls `each` with every PID in /proc, as text, until it returns false. Avoids opendir, which allocates. Returns
/// false if /proc cannot be listed.
template <class Each>
bool for_each_process(Each each) {
  const Fd directory(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return false;
  alignas(dirent64) std::array<char, 8192> space;
  for (;;) {
    const ssize_t got = ::getdents64(directory.get(), space.data(), space.size());
    if (got <= 0) return got == 0;
    for (ssize_t at = 0; at < got;) {
      const auto* item = reinterpret_cast<const dirent64*>(space.data() + at);
      const std::string_view name = item->d_name;
      if (name.front() >= '1' && name.front() <= '9' && !each(name)) return true;
      at += item->d_reclen;
    }
  }
}

enum class Relation { inside, outside, unsure };
struct Membership {
  Relation relation = Relation::unsure;
  std::size_t steps = 0;  ///< from the process's own namespace up to the wanted one
};

/// Returns whether `process` runs in `wanted` or in a descendant of it.
Membership membership(std::string_view process, const NamespaceId& wanted) {
  Fd at(::open(ProcPath(process, "ns/pid").text.data(), O_RDONLY | O_CLOEXEC));
  if (!at && (errno == ENOENT || errno == ESRCH)) return {Relation::outside};
  for (std::size_t steps = 0; at && steps < max_levels; ++steps) {
    struct stat status {};
    if (::fstat(at.get(), &status) != 0) break;
    if (namespace_of(status) == wanted) return {Relation::inside, steps};
    at = Fd(::ioctl(at.get(), NS_GET_PARENT));
    if (!at) return {errno == EPERM ? Relation::outside : Relation::unsure};  // EPERM: above our own namespace
  }
  return {};
}

/// Returns whether a process that /proc has just listed is gone.
bool is_gone(std::string_view process) {
  struct stat status {};
  return ::stat(ProcPath(process, "").text.data(), &status) != 0 && errno == ENOENT;
}

/// Searches /proc for the processes of one namespace.
class Search {
 public:
  Search(const View& view, const NamespaceId& wanted)
      : view_(view), wanted_(wanted), covers_(wanted == view.own || view.own.inode == initial_pid_namespace) {}

  /// Calls `each(process, levels, membership)` for every process that is or may be in the namespace.
  template <class Each>
  void run(Each each) {
    const bool listed = for_each_process([&](std::string_view process) {
      const auto levels = levels_of(process);
      if (!levels || levels->count == 0) {
        hidden_ = hidden_ || !is_gone(process);
        return true;
      }
      // Skips processes of /proc's own namespace if that is ours but not the wanted one.
      if (levels->count == 1 && view_.levels == 1 && wanted_ != view_.own) return true;
      const Membership found = membership(process, wanted_);
      covers_ = covers_ || found.relation == Relation::inside;
      if (found.relation != Relation::outside) each(process, *levels, found);
      return true;
    });
    hidden_ = hidden_ || !listed;
  }

  /// Returns whether a process that was not found does not exist.
  [[nodiscard]] bool is_complete() const { return covers_ && !hidden_ && !proc_hides_processes(); }

 private:
  const View& view_;
  const NamespaceId& wanted_;
  bool covers_;  ///< /proc shows the wanted namespace
  bool hidden_ = false;
};

bool has_no_such_process(std::int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH; }

/// As life_of(), for a process in this process's namespace, to which /proc belongs.
Life life_here(const ProcessId& process) {
  std::array<char, 24> space;
  const auto start = start_of(digits(space, process.pid));
  if (!start) return has_no_such_process(process.pid) ? Life::dead : Life::unknown;
  if (process.start_ticks == 0 || !has_machines_clock()) return Life::unknown;
  return *start == process.start_ticks ? Life::alive : Life::dead;
}

/// The state of a session's leader. Once another process has its PID, the number no longer identifies the session.
enum class Leader { gone, same, other, unsure };
Leader leader_is(std::string_view process, std::int64_t start_ticks) {
  const auto start = start_of(process);
  if (!start) return Leader::unsure;
  if (start_ticks == 0 || !has_machines_clock()) return Leader::unsure;
  return *start == start_ticks ? Leader::same : Leader::other;
}

Life session_life_here(const SessionId& session) {
  std::array<char, 24> space;
  const Leader leader = has_no_such_process(session.session)
                            ? Leader::gone
                            : leader_is(digits(space, session.session), session.start_ticks);
  if (leader == Leader::other) return Life::dead;
  bool found = false, unsure = false;
  const bool listed = for_each_process([&](std::string_view process) {
    const auto pid = parse_count<std::uint32_t>(process);
    const pid_t of = pid ? ::getsid(static_cast<pid_t>(*pid)) : -1;
    found = of == session.session && !is_zombie(process);
    unsure = unsure || (of < 0 && errno != ESRCH);
    return !found;
  });
  if (found) return Life::alive;
  return unsure || !listed || proc_hides_processes() ? Life::unknown : Life::dead;
}

/// An identity that stays while the process runs, and that its threads share. `number`: the process or session that it
/// is of; 0: none is known. A session changes at most once (setsid).
struct KnownIdentity {
  std::atomic<std::int64_t> number{0}, start_ticks{0};
  std::atomic<std::uint64_t> device{0}, inode{0};

  void keep(std::int64_t of, std::int64_t ticks, const NamespaceId& pid_namespace) {
    if (of <= 0 || ticks == 0 || !pid_namespace) return;
    number = 0;
    start_ticks = ticks;
    device = pid_namespace.device;
    inode = pid_namespace.inode;
    number = of;
  }
  /// Whether `ticks` and `pid_namespace` have been set to what is known of the process or session `of`.
  bool tell(std::int64_t of, std::int64_t& ticks, NamespaceId& pid_namespace) const {
    if (of <= 0 || number != of) return false;
    const std::int64_t known_ticks = start_ticks;
    const NamespaceId known_namespace{device, inode};
    if (number != of) return false;
    ticks = known_ticks;
    pid_namespace = known_namespace;
    return true;
  }
};
constinit KnownIdentity own_process, own_session;

}  // namespace

ProcessId this_process() {
  ProcessId process{.pid = ::getpid(), .pid_namespace = {}};
  if (own_process.tell(process.pid, process.start_ticks, process.pid_namespace)) return process;
  process.pid_namespace = namespace_at("self", "ns/pid").value_or(NamespaceId{});
  if (has_machines_clock()) process.start_ticks = start_of("self").value_or(0);
  own_process.keep(process.pid, process.start_ticks, process.pid_namespace);
  return process;
}

SessionId this_session() {
  SessionId session{.session = ::getsid(0), .pid_namespace = {}};
  if (own_session.tell(session.session, session.start_ticks, session.pid_namespace)) return session;
  const View view = look_around();
  session.pid_namespace = view.own;
  std::array<char, 24> space;
  // In another namespace's /proc, the number would name another process.
  if (session.session > 0 && view.levels == 1 && has_machines_clock())
    session.start_ticks = start_of(digits(space, session.session)).value_or(0);
  own_session.keep(session.session, session.start_ticks, session.pid_namespace);
  return session;
}

void forget_own_identity() { own_process.number = own_session.number = 0; }

bool is_in_initial_pid_namespace() { return this_process().pid_namespace.inode == initial_pid_namespace; }

bool has_machines_host_name() {
  // Asking /proc takes longer than creating a file. The answer belongs to the host name, not to the namespace: a
  // process that enters another namespace and keeps the name still has the machine's name, or one that is not known to
  // be it.
  static std::atomic<std::uint64_t> known{0};  // hash of the name; its last bit: the answer
  const std::uint64_t name = fnv1a(host_name()) & ~std::uint64_t{1};
  if (const std::uint64_t last = known.load(std::memory_order_relaxed); last != 0 && (last & ~std::uint64_t{1}) == name)
    return (last & 1) != 0;
  const auto own = namespace_at("self", "ns/uts");
  const bool is_machines = own && own->inode == initial_uts_namespace;
  if (own) known.store(name | (is_machines ? 1 : 0), std::memory_order_relaxed);
  return is_machines;
}

bool is_own_pid_namespace(const NamespaceId& pid_namespace) {
  return pid_namespace && namespace_at("self", "ns/pid") == pid_namespace;
}

Life life_of(const ProcessId& process) {
  const View view = look_around();
  if (process.pid <= 0 || !process.pid_namespace || !view.own || view.levels == 0) return Life::unknown;
  if (process.pid_namespace == view.own) {
    if (has_no_such_process(process.pid)) return Life::dead;
    if (view.levels == 1) return life_here(process);
  }
  if (process.start_ticks == 0 || !has_machines_clock()) return Life::unknown;
  Search search(view, process.pid_namespace);
  bool found = false, unsure = false;
  search.run([&](std::string_view pid, const Levels& levels, const Membership& in) {
    if (levels.pid() != process.pid || (in.relation == Relation::inside && in.steps != 0)) return;
    const auto start = start_of(pid);
    found = found || start == process.start_ticks;
    unsure = unsure || (!start && !is_gone(pid));
  });
  if (found) return Life::alive;
  return unsure || !search.is_complete() ? Life::unknown : Life::dead;
}

Life life_of(const SessionId& session) {
  const View view = look_around();
  if (session.session <= 0 || !session.pid_namespace || !view.own || view.levels == 0) return Life::unknown;
  if (session.pid_namespace == view.own && view.levels == 1) return session_life_here(session);
  Search search(view, session.pid_namespace);
  Leader leader = Leader::gone;
  bool found = false, unsure = false;
  search.run([&](std::string_view process, const Levels& levels, const Membership& in) {
    if (in.relation == Relation::unsure) {
      const auto end = levels.sessions.begin() + static_cast<std::ptrdiff_t>(levels.count);
      unsure = unsure || std::find(levels.sessions.begin(), end, session.session) != end;
    } else if (levels.count > in.steps) {
      const std::size_t level = levels.count - 1 - in.steps;
      found = found || levels.sessions[level] == session.session;
      if (levels.pids[level] == session.session) leader = leader_is(process, session.start_ticks);
    }
  });
  if (leader == Leader::other) return Life::dead;
  if (found) return Life::alive;
  return unsure || !search.is_complete() ? Life::unknown : Life::dead;
}

}  // namespace iosig
