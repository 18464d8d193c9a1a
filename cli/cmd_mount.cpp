// `iosig mount` and `iosig unmount`: show containers as ordinary files to unmodified programs. The daemon is a separate
// program (runtime/fuse). This file checks its preconditions, starts it and ends it.

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "background.h"
#include "commands.h"
#include "iosig/base/call_with_timeout.h"
#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/container/layout/container_directory.h"
#include "iosig/storage/mountinfo.h"
#include "parts.h"
#include "prefetch_options.h"
#include "trace_directory.h"

namespace iosig::cli {
namespace {

constexpr const char* our_filesystem = "fuse.iosig";
constexpr int end_limit_ms = 60'000;  ///< time for the daemon to flush its data to the device

struct MountArguments {
  std::string source, mount_point, index = "pattern";
  std::vector<std::string> containers;
  unsigned threads = 4;
  double cache_s = 1;
  bool foreground = false, read_only = false, uncached = false;
  std::string trace;  ///< directory; empty: none
  PrefetchOptions prefetch;
};

/// Returns the topmost mount at exactly this path, or nothing.
std::optional<Mount> mount_at(const std::string& path) {
  const auto text = read_file("/proc/self/mountinfo");
  std::optional<Mount> found;
  for (const Mount& mount : parse_mountinfo(text ? *text : ""))
    if (mount.path == path) found = mount;
  return found;
}

/// Returns the absolute path without symbolic links. Works even if a dead daemon is mounted there.
Result<std::string> resolved(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path plain(std::string(without_trailing_slashes(path)));
  const std::filesystem::path parent =
      std::filesystem::canonical(plain.has_parent_path() ? plain.parent_path() : std::filesystem::path("."), failure);
  const std::string last = plain.filename();
  if (!failure && !last.empty() && last != "." && last != "..") {
    std::string here = (parent / last).string();
    if (mount_at(here)) return here;
  }
  const auto whole = std::filesystem::canonical(plain, failure);
  if (failure) return system_failure("find", path, failure.value());
  return whole.string();
}

bool is_dead(const std::string& path) {
  const auto failure = call_with_timeout([&] {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? 0 : errno;
  });
  return failure && *failure == ENOTCONN;
}

/// Unmounts with umount2(2) if this process has the privilege, else with fusermount3. `later`: also while the mount is
/// in use (lazy unmount).
Result<void> take_away(const std::string& path, bool later) {
  if (::umount2(path.c_str(), UMOUNT_NOFOLLOW | (later ? MNT_DETACH : 0)) == 0) return {};
  if (errno == EBUSY)
    return fail(ErrorKind::system,
                "'{}' is in use: programs have files open or their working directory there (fuser -vm {})",
                printable(path), printable(path));
  if (errno != EPERM) return system_failure("unmount", path);
  const char* const words[] = {"fusermount3", later ? "-uz" : "-u", "--", path.c_str(), nullptr};
  pid_t child = -1;
  int status = 0;
  if (const int failure = ::posix_spawnp(&child, words[0], nullptr, nullptr, const_cast<char**>(words), environ);
      failure != 0)
    return system_failure("run", "fusermount3", failure);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) return fail(ErrorKind::system, "fusermount3 could not unmount '{}'", printable(path));
  return {};
}

Result<void> check_source(const std::string& source) {
  struct stat status {};
  if (::stat(source.c_str(), &status) != 0) return system_failure("inspect", source);
  if (!S_ISDIR(status.st_mode))
    return fail(ErrorKind::bad_input, "the source '{}' is not a directory", printable(source));
  if (is_container(source))
    return fail(ErrorKind::bad_input, "the source '{}' is a container; give its parent directory", printable(source));
  return {};
}

Result<void> check_mount_point(const std::string& source, const std::string& mount_point) {
  struct stat status {};
  if (::stat(mount_point.c_str(), &status) != 0) return system_failure("inspect", mount_point);
  if (!S_ISDIR(status.st_mode))
    return fail(ErrorKind::bad_input, "the mount point '{}' is not a directory", printable(mount_point));
  if (const auto busy = mount_at(mount_point))
    return fail(ErrorKind::system, "'{}' is a mount point already, of {} ({}); unmount that first{}",
                printable(mount_point), printable(busy->source), printable(busy->filesystem),
                busy->filesystem == our_filesystem ? ": iosig unmount " + printable(mount_point) : "");
  if (source == mount_point) return {};  // the mount covers the source itself
  if (is_below(source, mount_point))
    return fail(ErrorKind::bad_input, "the source '{}' is below the mount point '{}', which would hide it",
                printable(source), printable(mount_point));
  if (is_below(mount_point, source))
    return fail(
        ErrorKind::bad_input,
        "the mount point '{}' is below the source '{}', which would then contain itself; mount at a directory outside, "
        "or at the source itself",
        printable(mount_point), printable(source));
  const Fd directory(::open(mount_point.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return system_failure("open", mount_point);
  const auto names = names_in(directory);
  if (!names) return pass_on(names.error());
  if (!names->empty())
    return fail(ErrorKind::bad_input, "the mount point '{}' is not empty: it holds '{}'; give an empty directory",
                printable(mount_point), printable(names->front()));
  return {};
}

/// Makes the directory of the mount's trace. Returns its absolute path.
Result<std::string> begin_trace_of(const MountArguments& options) {
  std::error_code failure;
  const std::filesystem::path path =
      std::filesystem::weakly_canonical(std::filesystem::absolute(options.trace), failure);
  if (failure) return system_failure("find", options.trace, failure.value());
  if (is_below(path.string(), options.mount_point))
    return fail(
        ErrorKind::bad_input,
        "the trace '{}' is below the mount point '{}', and would record its own writes; give a directory outside",
        printable(options.trace), printable(options.mount_point));
  auto made = make_trace_directory(path.string(), {.command = {"iosig", "mount", options.source, options.mount_point},
                                                   .mount = options.mount_point});
  if (!made) return pass_on(made.error());
  if (!made->is_new) return another_trace(options.trace, "--trace");
  return std::move(made->path);
}

Result<void> check_device() {
  const Fd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (device) return {};
  if (errno == EACCES || errno == EPERM)
    return fail(ErrorKind::system, "this user may not use /dev/fuse: {}", std::strerror(errno));
  return fail(ErrorKind::system,
              "/dev/fuse cannot be opened: {}; load the kernel's module fuse, or give the device to "
              "the container that this runs in",
              std::strerror(errno));
}

std::vector<std::string> words_for_daemon(const std::string& daemon, const MountArguments& options) {
  std::vector<std::string> words = {daemon,
                                    "source=" + options.source,
                                    "mount_point=" + options.mount_point,
                                    "index=" + options.index,
                                    fmt::format("threads={}", options.threads),
                                    fmt::format("cache_s={}", options.cache_s)};
  for (const std::string& glob : options.containers)
    if (glob != "existing") words.push_back("containers=" + (glob == "all" ? "*" : glob));
  if (options.read_only) words.emplace_back("read_only=1");
  if (options.uncached) words.emplace_back("uncached=1");
  if (!options.trace.empty()) words.push_back("trace=" + options.trace);
  for (const auto& [name, value] : {std::pair{"prefetch=", &options.prefetch.predictor},
                                    {"prefetch_model=", &options.prefetch.model},
                                    {"prefetch_bytes=", &options.prefetch.memory},
                                    {"prefetch_report=", &options.prefetch.report}})
    if (!value->empty()) words.push_back(name + *value);
  return words;
}

[[noreturn]] void become(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  ::execv(pointers[0], pointers.data());
  ::_exit(system_refused);
}

/// Starts the daemon in the background. Returns its process id when the mount is ready. On failure the daemon itself
/// prints the reason.
Result<pid_t> start(std::vector<std::string> words) {
  int ready[2];
  if (::pipe2(ready, 0) != 0) return system_failure("make", "a pipe");
  const Fd read_end(ready[0]);
  ::fcntl(ready[0], F_SETFD, FD_CLOEXEC);
  words.push_back(fmt::format("ready_fd={}", ready[1]));
  const pid_t child = ::fork();
  if (child < 0) return system_failure("start", words[0]);
  if (child == 0) {
    ::setsid();
    close_inherited(ready[1]);
    become(words);
  }
  ::close(ready[1]);
  char byte = 0;
  ssize_t got = 0;
  while ((got = ::read(read_end.get(), &byte, 1)) < 0 && errno == EINTR) {
  }
  if (got == 1) return child;
  ::waitpid(child, nullptr, 0);
  return fail(ErrorKind::system, "the daemon of '{}' did not start", printable(words[1]));
}

int run_mount(MountArguments options, Console& console) {
  const auto daemon = find_daemon();
  if (!daemon) return console.fail(daemon.error());
  const auto source = resolved(options.source), mount_point = resolved(options.mount_point);
  if (!source) return console.fail(source.error());
  if (!mount_point) return console.fail(mount_point.error());
  options.source = *source;
  options.mount_point = *mount_point;
  if (const auto there = mount_at(*mount_point);
      there && there->filesystem == our_filesystem && is_dead(*mount_point)) {
    console.note(
        fmt::format("'{}' had been left mounted by a daemon that died; mounted it again", printable(*mount_point)));
    if (const auto taken = take_away(*mount_point, true); !taken) return console.fail(taken.error());
  }
  if (const auto checked = check_source(*source); !checked) return console.fail(checked.error());
  if (const auto checked = check_mount_point(*source, *mount_point); !checked) return console.fail(checked.error());
  if (const auto checked = check_device(); !checked) return console.fail(checked.error());
  auto prefetch = checked(options.prefetch, console);
  if (!prefetch) return console.fail(prefetch.error());
  options.prefetch = std::move(*prefetch);
  std::error_code unknown;
  const std::string report = std::filesystem::weakly_canonical(options.prefetch.report, unknown).string();
  if (!options.prefetch.report.empty() && is_below(report, options.mount_point))
    return console.fail(
        {ErrorKind::bad_input,
         fmt::format("the report '{}' is below the mount point '{}', which is about to end when the report "
                     "is written; name a file outside",
                     printable(options.prefetch.report), printable(options.mount_point))});
  if (!options.trace.empty()) {
    auto trace = begin_trace_of(options);
    if (!trace) return console.fail(trace.error());
    console.note(fmt::format("tracing into '{0}': iosig trace info '{0}'", printable(options.trace)));
    options.trace = std::move(*trace);
  }
  const std::vector<std::string> words = words_for_daemon(*daemon, options);
  if (options.foreground) {
    console.talk(fmt::format("{} is mounted at {} until ^C", printable(*source), printable(*mount_point)));
    become(words);
  }
  const auto pid = start(words);
  if (!pid) {
    if (!options.trace.empty()) ::unlink(fmt::format("{}/{}", options.trace, trace_manifest_name).c_str());
    return console.fail(pid.error());
  }
  if (console.json)
    console.say_json("iosig.mount/1",
                     {{"source", printable(*source)}, {"mount_point", printable(*mount_point)}, {"pid", *pid}});
  return yes;
}

/// Returns a descriptor (pidfd) of the daemon's process for waiting; none if it is dead or belongs to another user.
Fd daemon_of(const std::string& mount_point) {
  struct Pid {
    std::array<char, 16> text;
    ssize_t length;
  };
  const auto pid = call_with_timeout([&] {
    Pid known{};
    known.length = ::getxattr(mount_point.c_str(), "user.iosig.daemon", known.text.data(), known.text.size());
    return known;
  });
  if (!pid || pid->length <= 0) return {};
  const auto number = parse_count({pid->text.data(), static_cast<std::size_t>(pid->length)});
  return number ? Fd(static_cast<int>(::syscall(SYS_pidfd_open, *number, 0))) : Fd{};
}

int run_unmount(const std::string& given, Console& console) {
  const auto path = resolved(given);
  if (!path) return console.fail(path.error());
  const auto there = mount_at(*path);
  if (!there || there->filesystem != our_filesystem)
    return console.fail(
        {ErrorKind::bad_input, fmt::format("'{}' is not a mount of `iosig mount`{}", printable(*path),
                                           there ? fmt::format(", but {}", printable(there->filesystem)) : "")});
  const bool was_dead = is_dead(*path);
  const Fd daemon = was_dead ? Fd{} : daemon_of(*path);
  if (const auto taken = take_away(*path, was_dead); !taken) return console.fail(taken.error());
  if (was_dead) console.note("its daemon had died; the data it had written are in the containers");
  if (!daemon) return yes;
  pollfd end{daemon.get(), POLLIN, 0};
  if (::poll(&end, 1, end_limit_ms) == 0)
    return console.fail({ErrorKind::system, "unmounted, but the daemon is still flushing written data"});
  return yes;
}

}  // namespace

void add_mount(Verb app, Action& action) {
  const Verb mount = app.add_verb("mount", "Mount a directory with its containers as ordinary files");
  const auto options = std::make_shared<MountArguments>();
  mount.add_option("SOURCE", options->source, "the directory that holds the files").required();
  mount.add_option("MOUNTPOINT", options->mount_point, "an empty directory, or SOURCE itself").required();
  mount
      .add_option("--containers", options->containers,
                  "which new files become containers: a glob of names or, with a slash, of paths below SOURCE; all; "
                  "existing: none (default)")
      .repeatable();
  mount.add_option("--index", options->index, "index of new containers: pattern (default) or traditional")
      .check(one_of({"pattern", "traditional"}));
  mount.add_option("--threads", options->threads, "maximum number of threads that serve requests (default 4)")
      .check(count_between(1, 1024));
  mount
      .add_option("--cache-seconds", options->cache_s,
                  "seconds for which changes made directly in SOURCE may go unnoticed (default 1)")
      .check(between(0, 86400));
  mount.add_flag("--read-only", options->read_only, "refuse every change through the mount");
  mount.add_flag("--uncached", options->uncached,
                 "bypass the kernel's cache: each read arrives as the program made it; no file can be mapped shared");
  mount
      .add_option("--trace", options->trace,
                  "record each request of each program in this directory, new, as 'iosig trace' does")
      .type_name("DIR");
  add_prefetch_options(mount, options->prefetch);
  mount.add_flag("--foreground", options->foreground, "stay in the terminal and report errors there");
  mount.footer("Example: iosig mount --containers '*.h5' /scratch/run /tmp/run");
  mount.when_chosen(action, "iosig.mount/1", [options](Console& console) { return run_mount(*options, console); });
}

void add_unmount(Verb app, Action& action) {
  const Verb unmount = app.add_verb("unmount", "Flush and unmount");
  const auto path = std::make_shared<std::string>();
  unmount.add_option("MOUNTPOINT", *path, "where `iosig mount` put it").required();
  unmount.footer("Example: iosig unmount /tmp/run");
  unmount.when_chosen(action, "", [path](Console& console) { return run_unmount(*path, console); });
}

}  // namespace iosig::cli
