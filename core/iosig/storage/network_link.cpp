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
#include <utility>

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

/// An address of either family, as the calls take it.
struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;

  [[nodiscard]] const sockaddr* get() const {
    return reinterpret_cast<const sockaddr*>(&storage);  // NOLINT: the interface of connect(2) and bind(2)
  }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }  // NOLINT: that of getsockname(2)

  template <class Kind>
  static Address of(const Kind& given) {
    Address made;
    std::memcpy(&made.storage, &given, sizeof given);
    made.size = sizeof given;
    return made;
  }
};

/// Of no family if `text` is no address.
Address address_of(const std::string& text, std::uint16_t port) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) return Address::of(four);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  if (::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) == 1) return Address::of(six);
  return {};
}

/// "10.0.0.7" also for an IPv4 address that an IPv6 socket shows; empty for those of one link, and other families.
std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    sockaddr_in four{};
    std::memcpy(&four, address, sizeof four);
    ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
  } else if (address->sa_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, address, sizeof six);
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
      ::inet_ntop(AF_INET, six.sin6_addr.s6_addr + 12, text, sizeof text);
    else if (!IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr))
      ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
  }
  return text;
}

/// A socket that listens on all interfaces, or none, with errno.
Fd listening(const Address& any, bool takes_both) {
  Fd socket(::socket(any.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int no = 0;
  if (socket && takes_both) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (!socket || ::bind(socket.get(), any.get(), any.size) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) return {};
  return socket;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Deadline after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

bool is_loopback(std::string_view address) { return address.starts_with("127.") || address == "::1"; }

std::vector<std::string> own_addresses() {
  std::vector<std::string> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) == 0) {
    for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
      if (std::string text = text_of(each->ifa_addr); !text.empty()) addresses.push_back(std::move(text));
    }
    ::freeifaddrs(list);
  }
  std::ranges::stable_sort(addresses, {}, [](const std::string& each) {
    return std::pair(is_loopback(each), each.find(':') != std::string::npos);
  });
  return addresses;
}

Result<Connection> Connection::to(const Endpoint& peer, Deadline deadline) {
  std::string tried = "it has no address";
  for (const std::string& address : peer.addresses) {
    const Address to = address_of(address, peer.port);
    Fd socket(::socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket) {  // a host without IPv6, or no address
      tried = fmt::format("{}: {}", address, std::strerror(errno));
      continue;
    }
    int failure = ::connect(socket.get(), to.get(), to.size) == 0 ? 0 : errno;
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
    tried = fmt::format("{} port {}: {}", address, peer.port, std::strerror(failure));
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
  Address own;
  own.size = sizeof own.storage;
  return ::getsockname(socket_.get(), own.get(), &own.size) == 0 ? text_of(own.get()) : "";
}

bool Connection::has_ended() const {
  pollfd polled{socket_.get(), POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) > 0 && (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

Result<Listener> Listener::open() {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  Listener made;
  made.socket_ = listening(Address::of(six), true);
  if (!made.socket_) made.socket_ = listening(Address::of(four), false);
  Address own;
  own.size = sizeof own.storage;
  if (!made.socket_ || ::getsockname(made.socket_.get(), own.get(), &own.size) != 0)
    return lost("cannot listen for TCP connections");
  // The port is in the same place in both families.
  std::memcpy(&four, &own.storage, sizeof four);
  made.port_ = ntohs(four.sin_port);
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
