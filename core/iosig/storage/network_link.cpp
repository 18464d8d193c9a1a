#include "iosig/storage/network_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace iosig::network {
namespace {

constexpr double connect_limit_s = 2;
constexpr std::size_t max_line = std::size_t{64} << 10U;

tl::unexpected<Error> lost(std::string_view doing) {
  return fail(ErrorKind::system, "{}: {}", doing, std::strerror(errno));
}

/// Waits until the socket is ready for `events`.
Result<void> wait_for(int fd, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return fail(ErrorKind::system, "no answer in time");
    pollfd polled{fd, events, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(std::min<long long>(left, 1000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return lost("poll");
  }
}

sockaddr_in address_of(const std::string& address, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  if (::inet_pton(AF_INET, address.c_str(), &made.sin_addr) != 1) made.sin_family = AF_UNSPEC;
  return made;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Deadline after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

bool is_loopback(std::string_view address) { return address.starts_with("127."); }

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) == 0) {
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET || (each->ifa_flags & IFF_UP) == 0)
        continue;
      char text[INET_ADDRSTRLEN] = "";
      sockaddr_in address{};
      std::memcpy(&address, each->ifa_addr, sizeof address);
      if (::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text) != nullptr) addresses.emplace_back(text);
    }
    ::freeifaddrs(list);
  }
  std::stable_partition(addresses.begin(), addresses.end(), [](const std::string& each) { return !is_loopback(each); });
  return addresses;
}

Result<Connection> Connection::to(const Endpoint& peer, Deadline deadline) {
  std::string tried = "it has no address";
  for (const std::string& address : peer.addresses) {
    const sockaddr_in to = address_of(address, peer.port);
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) return lost("socket");
    const auto* const name = reinterpret_cast<const sockaddr*>(&to);  // NOLINT: the interface of connect(2)
    int failure = ::connect(socket.get(), name, sizeof to) == 0 ? 0 : errno;
    if (failure == EINPROGRESS) {
      socklen_t size = sizeof failure;
      const bool is_ready = wait_for(socket.get(), POLLOUT, std::min(deadline, after(connect_limit_s))).has_value();
      if (!is_ready)
        failure = ETIMEDOUT;
      else if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &failure, &size) != 0)
        failure = errno;
    }
    if (failure == 0) {
      send_at_once(socket.get());
      return Connection(std::move(socket));
    }
    tried = fmt::format("{}:{}: {}", address, peer.port, std::strerror(failure));
  }
  return fail(ErrorKind::system, "{}", tried);
}

Result<void> Connection::write(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      if (auto ready = wait_for(socket_.get(), POLLOUT, deadline); !ready) return ready;
    } else {
      return lost("send");
    }
  }
  return {};
}

Result<void> Connection::read(std::span<char> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return fail(ErrorKind::system, "it has ended");
    } else if (errno == EAGAIN || errno == EINTR) {
      if (auto ready = wait_for(socket_.get(), POLLIN, deadline); !ready) return ready;
    } else {
      return lost("receive");
    }
  }
  return {};
}

Result<std::string> Connection::read_line(Deadline deadline) {
  std::string line;
  for (char next = 0; line.size() < max_line; line += next) {
    if (auto got = read({&next, 1}, deadline); !got) return pass_on(got.error());
    if (next == '\n') return line;
  }
  return fail(ErrorKind::system, "it sent a line without an end");
}

std::string Connection::own_address() const {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  char text[INET_ADDRSTRLEN] = "";
  auto* const name = reinterpret_cast<sockaddr*>(&address);  // NOLINT: the interface of getsockname(2)
  if (::getsockname(socket_.get(), name, &size) == 0) ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return text;
}

Result<Listener> Listener::open() {
  Listener made;
  made.socket_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof any;
  auto* const name = reinterpret_cast<sockaddr*>(&any);  // NOLINT: the interface of bind(2)
  if (!made.socket_ || ::bind(made.socket_.get(), name, size) != 0 || ::listen(made.socket_.get(), SOMAXCONN) != 0 ||
      ::getsockname(made.socket_.get(), name, &size) != 0)
    return lost("cannot listen for TCP connections");
  made.port_ = ntohs(any.sin_port);
  return made;
}

Result<Connection> Listener::accept(Deadline deadline) const {
  for (;;) {
    Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      send_at_once(socket.get());
      return Connection(std::move(socket));
    }
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return lost("accept");
    if (auto ready = wait_for(socket_.get(), POLLIN, deadline); !ready) return pass_on(ready.error());
  }
}

}  // namespace iosig::network
