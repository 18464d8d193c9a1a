// A file server behind a slow network, all in one program; sshfs calls it instead of ssh:
//
//   slownet SFTP_SERVER size=BYTES read=BYTES_PER_S write=BYTES_PER_S latency_us=N [what sshfs appends, ignored]
//
// The server keeps its files in a tmpfs that is mounted nowhere: no other process sees them, and they are gone with the
// server. What goes to it travels at `write`, what comes back at `read`, each way taking half of the latency.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

#include "service.h"

namespace {

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "slownet: cannot %s: %s\n", what, std::strerror(errno));
  std::exit(4);
}

/// One direction of the network: bytes that are read from `from` reach `to` when they have travelled.
class Direction {
 public:
  Direction(int from, int to, std::uint64_t bytes_per_s, std::chrono::nanoseconds latency)
      : from_(from), to_(to), bytes_per_s_(bytes_per_s), latency_(latency) {}

  /// Returns at the end of `from`, when all has been passed on, or when nobody takes it any more.
  void run() {
    std::thread delivering(&Direction::deliver, this);
    std::array<char, 64 * 1024> part;
    for (ssize_t got; (got = ::read(from_, part.data(), part.size())) > 0;) {
      const auto bytes = static_cast<std::size_t>(got);
      const lab::Time end = wire_.transfer(lab::Clock::now(), bytes, bytes_per_s_) + latency_;
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return travelling_.size() < max_parts || broken_; });
      if (broken_) break;
      travelling_.push_back({end, {part.begin(), part.begin() + got}});
      changed_.notify_all();
    }
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    delivering.join();
    ::shutdown(to_, SHUT_WR);
  }

 private:
  struct Part {
    lab::Time end;
    std::vector<char> bytes;
  };

  void deliver() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !travelling_.empty() || ended_; });
      if (travelling_.empty()) return;
      const Part part = std::move(travelling_.front());
      travelling_.pop_front();
      changed_.notify_all();
      lock.unlock();
      std::this_thread::sleep_until(part.end);
      std::size_t sent = 0;
      for (ssize_t put; sent < part.bytes.size(); sent += static_cast<std::size_t>(put))
        if ((put = ::send(to_, &part.bytes[sent], part.bytes.size() - sent, MSG_NOSIGNAL)) < 0) break;
      if (sent == part.bytes.size()) continue;
      lock.lock();
      broken_ = true;
      changed_.notify_all();
      return;
    }
  }

  static constexpr std::size_t max_parts = 16;  ///< a window of 1 MiB, far more than bandwidth x latency

  const int from_, to_;
  const std::uint64_t bytes_per_s_;
  const std::chrono::nanoseconds latency_;
  lab::Bus wire_;  ///< of the reading thread

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<Part> travelling_;
  bool ended_ = false, broken_ = false;
};

/// Becomes the server, in a tmpfs of its own as working directory.
[[noreturn]] void serve(const char* program, std::uint64_t size, int connection) {
  const int setting = ::fsopen("tmpfs", FSOPEN_CLOEXEC);
  const std::string bytes = std::to_string(size);
  if (setting < 0 || ::fsconfig(setting, FSCONFIG_SET_STRING, "size", bytes.c_str(), 0) != 0 ||
      ::fsconfig(setting, FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    refuse("make a tmpfs");
  const int storage = ::fsmount(setting, FSMOUNT_CLOEXEC, 0);
  if (storage < 0 || ::fchdir(storage) != 0) refuse("enter a tmpfs");
  if (::dup2(connection, STDIN_FILENO) < 0 || ::dup2(connection, STDOUT_FILENO) < 0) refuse("connect the server");
  ::execl(program, program, nullptr);
  refuse("run the server");
}

}  // namespace

int main(int count, char** arguments) {
  constexpr int own = 6;
  if (count < own) {
    std::fprintf(stderr,
                 "usage: slownet SFTP_SERVER size=BYTES read=BYTES_PER_S write=BYTES_PER_S latency_us=N [IGNORED]\n");
    return 2;
  }
  const auto given = lab::numbers({arguments + 2, arguments + own}, {"size", "read", "write", "latency_us"});
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) refuse("make a connection");
  const pid_t server = ::fork();
  if (server < 0) refuse("start the server");
  if (server == 0) serve(arguments[1], given.at("size"), ends[1]);
  ::close(ends[1]);

  lab::be_punctual();
  const std::chrono::nanoseconds one_way = std::chrono::microseconds(given.at("latency_us")) / 2;
  Direction there(STDIN_FILENO, ends[0], given.at("write"), one_way);
  Direction back(ends[0], STDOUT_FILENO, given.at("read"), one_way);
  std::thread answers(&Direction::run, &back);
  there.run();
  answers.join();
  ::waitpid(server, nullptr, 0);
}
