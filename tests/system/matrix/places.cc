// What the plugin must do under every flag, in C++: as places.c.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#if __cplusplus >= 201703L
#include <filesystem>
#endif
#if __cplusplus >= 202002L
#include <coroutine>
#endif

namespace {

constexpr int create = O_CREAT | O_WRONLY;
const std::string suffix = "-";

void put(int fd, const std::string& name) {
  if (fd < 3 || write(fd, name.data(), name.size()) < 0) std::fprintf(stderr, "cannot write %s\n", name.c_str());
  close(fd);
}
void put_name(std::ostream& to, const char* name) { to << name << std::flush; }

template <class Path>
void in_template(const Path& path, const char* name) {
#pragma sig temp totalsize(1KB)
  std::ofstream file(path);
  put_name(file, name);
}

struct Parts {
  int before, fd;
};

struct Member {
  std::ofstream file;
  explicit Member(const char* name) {
#pragma sig temp totalsize(2KB)
    file.open(name);
    put_name(file, name);
  }
};

struct Derived : std::ofstream {
  void again(const char* name) {
#pragma sig temp totalsize(3KB)
    open(name, std::ios::app);
    put_name(*this, name);
  }
};

struct Guard {
  int* fd;
  explicit Guard(int* to_close) : fd(to_close) {}
  ~Guard() {
#pragma sig temp totalsize(4KB)
    *fd = open("ok-destructor-4", create, 0600);
  }
};

int throwing(bool really) {
  if (really) throw std::runtime_error("expected");
  return 0;
}

#if __cplusplus >= 201402L
constexpr int in_constexpr(bool run) {
  if (!run) return 0;
#pragma sig temp totalsize(5KB)
  return open("ok-constexpr-5", create, 0600);
}
#endif

#if __cplusplus >= 202002L
struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
};
Task coroutine() {
  co_await std::suspend_never{};
#pragma sig temp totalsize(6KB)
  const int fd = open("ok-coroutine-6", create, 0600);
  put(fd, "ok-coroutine-6");
}
#endif

}  // namespace

int main(int argc, char**) {
#pragma sig temp totalsize(7KB)
  if (std::ofstream file{"ok-if-7"}) put_name(file, "ok-if-7");
  const auto lambda = [argc](const char* name) {
    if (argc > 1000) return -1;
#pragma sig temp totalsize(8KB)
    return open(name, create, 0600);
  };
  put(lambda("ok-lambda-8"), "ok-lambda-8");
  int fd = -1;
  try {
    Guard guard(&fd);
#pragma sig temp totalsize(9KB)
    fd = open("ok-try-9", create, 0600);
    put(fd, "ok-try-9");
    throwing(argc > 0);
  } catch (const std::exception&) {
#pragma sig temp totalsize(10KB)
    const int other = open("ok-catch-10", create, 0600);
    put(other, "ok-catch-10");
  }
  put(fd, "ok-destructor-4");
#pragma sig temp totalsize(11KB)
  auto* heap = new std::ofstream("ok-heap" + suffix + "11");
  put_name(*heap, "ok-heap-11");
  delete heap;
#pragma sig temp totalsize(12KB)
  std::FILE* file = std::fopen("ok-fopen-12", "w");
  std::fputs("ok-fopen-12", file);
  std::fclose(file);
#pragma sig temp totalsize(13KB)
  std::ofstream("ok-temporary-13") << "ok-temporary-13";
#pragma sig temp totalsize(14KB)
  static std::ofstream kept("ok-static-14");
  put_name(kept, "ok-static-14");
  for (const char* name : {"ok-range-15", "ok-more-15"}) {
#pragma sig temp totalsize(15KB)
    std::fstream both(name, std::ios::out | std::ios::binary);
    put_name(both, name);
  }
  std::filebuf buffer;
#pragma sig temp totalsize(16KB)
  buffer.open("ok-buffer-16", std::ios::out);
  buffer.sputn("ok-buffer-16", 12);
  std::ofstream none("no-after");
  put_name(none, "no-after");
  in_template("ok-template-1", "ok-template-1");
  in_template(std::string("ok-string-1"), "ok-string-1");
  Member("ok-member-2");
  Derived().again("ok-derived-3");
#pragma sig temp totalsize(19KB)
  const Parts parts = {1, open("ok-part-19", create, 0600)};
  put(parts.fd, "ok-part-19");
#pragma sig temp totalsize(20KB)
  std::ofstream array[2] = {std::ofstream("ok-element-20"), std::ofstream()};
  put_name(array[0], "ok-element-20");
#if __cplusplus >= 201402L
#pragma sig temp totalsize(21KB)
  const auto capture = [before = 1, fd = open("ok-capture-21", create, 0600)] { return fd * before; };
  put(capture(), "ok-capture-21");
  put(in_constexpr(argc > 0), "ok-constexpr-5");
#endif
#if __cplusplus >= 201703L
#pragma sig temp totalsize(17KB)
  if (int opened = open("ok-initialiser-17", create, 0600); opened > 0) put(opened, "ok-initialiser-17");
#pragma sig temp totalsize(18KB)
  std::ofstream path(std::filesystem::path("ok-path-18"));
  put_name(path, "ok-path-18");
#endif
#if __cplusplus >= 202002L
  coroutine();
#endif
}
