// The daemon behind `iosig mount`: mounts a directory a second time, with its containers as files.
//
//   iosig-fuse source=PATH mount_point=PATH [index=pattern|traditional] [containers=GLOB]... [threads=N] [cache_s=S]
//              [read_only=1] [uncached=1] [trace=DIRECTORY] [ready_fd=N]
//
// `iosig mount` checks the paths and starts the daemon. SIGTERM, SIGINT and SIGHUP end it: it replies to waiting
// requests, closes the writers, flushes everything to the device and unmounts. A killed daemon leaves its containers in
// the same state as any killed writer.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "iosig/base/text.h"
#include "iosig/container/admin/removal.h"
#include "mount.h"
#include "prefetching.h"
#include "traced_requests.h"

namespace {

using namespace iosig;
using namespace iosig::fuse;

enum ExitStatus { ended = 0, wrong_usage = 2, refused = 4 };

int complain(int status, const std::string& message) {
  std::fprintf(stderr, "iosig: %s\n", message.c_str());
  return status;
}

bool read_word(std::string_view word, MountOptions& options) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = word.substr(0, equals);
  const std::string value(word.substr(equals + 1));
  if (name == "source")
    options.source = value;
  else if (name == "mount_point")
    options.mount_point = value;
  else if (name == "containers")
    options.containers.push_back(value);
  else if (name == "index")
    options.index = value == name_of(IndexKind::traditional) ? IndexKind::traditional : IndexKind::pattern;
  else if (name == "threads")
    options.threads = parse_count(value).value_or(0);
  else if (name == "cache_s")
    options.cache_s = std::strtod(value.c_str(), nullptr);
  else if (name == "read_only")
    options.read_only = value == "1";
  else if (name == "uncached")
    options.uncached = value == "1";
  else if (name == "trace")
    options.trace = value;
  else if (name == "prefetch")
    options.prefetch = value;
  else if (name == "prefetch_model")
    options.prefetch_model = value;
  else if (name == "prefetch_report")
    options.prefetch_report = value;
  else if (name == "prefetch_bytes")
    options.prefetch_bytes = static_cast<std::int64_t>(parse_count<std::uint64_t>(value).value_or(0));
  else if (name == "ready_fd")
    options.ready_fd = static_cast<int>(parse_count(value).value_or(0));
  else
    return false;
  return true;
}

/// Each open file takes descriptors of the daemon.
void raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

fuse_lowlevel_ops operations(bool are_traced) {
  fuse_lowlevel_ops all{};
  all.init = [](void*, fuse_conn_info* connection) {
    connection->max_write = 1u << 20;
    connection->max_readahead = 1u << 20;
    connection->max_background = 64;
    connection->congestion_threshold = 48;
    // No writeback cache: it merges writes and hides their pattern. No splicing of written data: a container needs the
    // bytes in memory.
    connection->want &= ~static_cast<unsigned>(FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ);
    connection->want |= connection->capable & (FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE | FUSE_CAP_HANDLE_KILLPRIV |
                                               FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_ATOMIC_O_TRUNC);
  };
  add_names(all);
  add_directories(all);
  add_attributes(all);
  add_data(all);
  if (are_traced) add_tracing(all);
  return all;
}

/// A thread that waits for the signals that end the mount. They are blocked in all other threads.
class EndBySignal {
 public:
  EndBySignal(fuse_session* session, Mount& mount) : session_(session), mount_(mount) {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    ::sigaction(SIGUSR1, &nothing, nullptr);  // interrupts the thread that waits for the others to end
    thread_ = std::thread(&EndBySignal::wait, this);
  }
  EndBySignal(const EndBySignal&) = delete;
  EndBySignal& operator=(const EndBySignal&) = delete;
  ~EndBySignal() {
    is_over_ = true;
    ::pthread_kill(thread_.native_handle(), SIGINT);
    thread_.join();
  }

  static sigset_t signals() {
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
    return set;
  }

 private:
  void wait() {
    const sigset_t set = signals();
    int signal = 0;
    while (::sigwait(&set, &signal) != 0) {
    }
    if (is_over_) return;
    // First, because it waits for requests that must still be served.
    mount_.invalidation.stop();
    fuse_session_exit(session_);
    while (!is_over_) {  // repeated, because the main thread may not be waiting yet
      ::pthread_kill(main_, SIGUSR1);
      ::usleep(10'000);
    }
  }

  fuse_session* const session_;
  Mount& mount_;
  const pthread_t main_ = ::pthread_self();
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

void leave_terminal(int ready_fd) {
  (void)!::write(ready_fd, "1", 1);
  ::close(ready_fd);
  const Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int standard : {0, 1, 2}) ::dup2(nothing.get(), standard);
}

int serve(Mount& mount) {
  const MountOptions& options = mount.options;
  fuse_args arguments = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&arguments, "iosig-fuse");
  char* all_options = nullptr;
  fuse_opt_add_opt(&all_options, options.read_only ? "default_permissions,nosuid,nodev,subtype=iosig,ro"
                                                   : "default_permissions,nosuid,nodev,subtype=iosig");
  fuse_opt_add_opt_escaped(&all_options, ("fsname=" + options.source).c_str());
  fuse_opt_add_arg(&arguments, "-o");
  fuse_opt_add_arg(&arguments, all_options);
  const fuse_lowlevel_ops all = operations(mount.tracer != nullptr);
  fuse_session* const session = fuse_session_new(&arguments, &all, sizeof all, &mount);
  fuse_opt_free_args(&arguments);
  std::free(all_options);
  if (session == nullptr) return refused;  // libfuse has printed the reason
  if (fuse_session_mount(session, options.mount_point.c_str()) != 0) {
    fuse_session_destroy(session);
    return complain(refused, fmt::format("cannot mount at '{}'", printable(options.mount_point)));
  }
  if (options.ready_fd >= 0) leave_terminal(options.ready_fd);
  fuse_loop_config* const config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_max_threads(config, options.threads);
  fuse_loop_cfg_set_idle_threads(config, options.threads);  // ending and restarting threads costs more
  int status = 0;
  {
    mount.invalidation.start(session);
    const EndBySignal by_signal(session, mount);
    status = fuse_session_loop_mt(session, config);
  }
  mount.invalidation.stop();
  end_prefetching(options);
  bool is_synced = true;
  mount.inodes.for_each([&](Inode& inode) {
    if (inode.container && inode.container->writers().finish() != 0) is_synced = false;
    if (inode.held) let_go_container(std::move(inode.held));
  });
  const Fd source(::openat(mount.inodes.root().fd->get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!options.read_only && (!source || ::syncfs(source.get()) != 0)) is_synced = false;
  fuse_session_unmount(session);
  fuse_session_destroy(session);
  fuse_loop_cfg_destroy(config);
  if (!is_synced) ::syslog(LOG_ERR, "'%s': not everything could be synced", options.source.c_str());
  return (status == 0 || status == ENOENT) && is_synced ? ended : refused;
}

}  // namespace

int main(int count, char** words) {
  MountOptions options;
  for (int n = 1; n < count; ++n)
    if (!read_word(words[n], options))
      return complain(wrong_usage, fmt::format("'{}': no such option", printable(words[n])));
  if (options.source.empty() || options.mount_point.empty() || options.threads == 0)
    return complain(wrong_usage, "this is the daemon of `iosig mount`; see iosig mount --help");
  ::openlog("iosig-fuse", LOG_PID | (options.ready_fd < 0 ? LOG_PERROR : 0), LOG_USER);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the inherited RLIMIT_FSIZE fails, but the mount stays
  const sigset_t ending = EndBySignal::signals();
  ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
  raise_open_files();
  ::umask(0);  // the kernel has already applied the umask of the calling process
  Fd source(::open(options.source.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!source)
    return complain(refused, fmt::format("cannot open '{}': {}", printable(options.source), std::strerror(errno)));
  Mount mount(std::move(options), std::move(source));
  if (const std::string& trace = mount.options.trace; !trace.empty()) {
    Fd directory(::open(trace.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory)
      return complain(refused, fmt::format("cannot open '{}': {}", printable(trace), std::strerror(errno)));
    auto tracer = Tracer::start(std::move(directory), trace);
    if (!tracer) return complain(refused, tracer.error().message);
    mount.tracer = std::move(*tracer);
  }
  if (const auto started = start_prefetching(mount.options); !started)
    return complain(refused, started.error().message);
  (void)!::chdir("/");
  return serve(mount);
}
