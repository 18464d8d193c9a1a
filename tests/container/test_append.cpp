// Room at the end of the file that an append took and did not fill: whatever kept it from that, the next append goes
// there, unless another one lies behind it already.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "bytes.h"
#include "iosig/base/size_limit.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/shared/shared_container.h"
#include "iosig/container/write/container_writer.h"
#include "support/directories.h"

using namespace iosig;
using iosig::test::Directory;

namespace {

/// For this process, whose signal for it is ignored; lifted again at the end.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    (void)std::signal(SIGXFSZ, SIG_IGN);
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(read_size_limit() == static_cast<std::int64_t>(bytes));
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;
  ~SizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    read_size_limit();
    (void)std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

/// What append() gives: where it begins, and how many bytes of it are written; -1: none.
struct Appended {
  std::int64_t offset = -1, written = -1;
  bool operator==(const Appended&) const = default;
};

Appended append(ContainerWriter& writer, std::size_t bytes, char byte) {
  Appended done;
  const auto at = writer.append(bytes_of(std::string(bytes, byte)), done.written);
  if (!at) return {};
  done.offset = *at;
  return done;
}

std::string content(const std::shared_ptr<const ContainerDirectory>& directory) {
  const auto view = ContainerView::open(directory).value();
  std::string text(static_cast<std::size_t>(view->size()), '\0');
  CHECK(view->read(0, std::as_writable_bytes(std::span(text))).value_or(-1) == view->size());
  return text;
}

/// A process that makes `step`, and how it ended.
template <class Step>
int ended_as(Step step) {
  const pid_t child = ::fork();
  if (child == 0) {
    step();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("append: after one that was short, or failed, the next goes on where the bytes end") {
  const Directory directory;
  const auto container = create_container(directory.path() + "/log").value();
  const auto mine = ContainerWriter::open(container).value(), other = ContainerWriter::open(container).value();
  CHECK(append(*mine, 100, 'a') == Appended{0, 100});
  CHECK(append(*other, 50, 'b') == Appended{100, 50});
  {
    const SizeLimit limit(300);
    CHECK(append(*mine, 1000, 'c') == Appended{150, 200});  // a dropping of 300 bytes has room for 200 more
    CHECK(append(*mine, 1000, 'd') == Appended{});          // it is full
    std::int64_t written = 0;
    const auto refused = mine->append(bytes_of("e"), written);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().system_errno == EFBIG);
    CHECK(errno_of(refused.error()) == EFBIG);
  }
  CHECK(append(*other, 50, 'f') == Appended{350, 50});
  CHECK(append(*mine, 10, 'g') == Appended{400, 10});
  const std::string wanted = std::string(100, 'a') + std::string(50, 'b') + std::string(200, 'c') +
                             std::string(50, 'f') + std::string(10, 'g');
  CHECK(content(container) == wanted);
  REQUIRE(mine->close());
  REQUIRE(other->close());
  CHECK(content(container) == wanted);
}

TEST_CASE("append: the room of a process that is killed while it appends is given back") {
  const Directory directory;
  const auto container = create_container(directory.path() + "/log").value();
  const auto survivor = ContainerWriter::open(container).value();
  CHECK(append(*survivor, 10, 'a') == Appended{0, 10});
  const auto die_in_append = [&] {
    const auto writer = ContainerWriter::open(container).value();
    (void)append(*writer, 20, 'b');
    rlimit limit{20, 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    (void)append(*writer, 100, 'x');  // SIGXFSZ comes from within its write
  };
  for (int n = 0; n < 2; ++n) {
    const int status = ended_as(die_in_append);
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGXFSZ);
  }
  // One of its room is given back by a writer that was there, then by one that begins.
  CHECK(append(*survivor, 10, 'c') == Appended{50, 10});
  REQUIRE(WIFSIGNALED(ended_as(die_in_append)));
  const auto late = ContainerWriter::open(container).value();
  CHECK(append(*late, 10, 'd') == Appended{80, 10});
  const std::string b(20, 'b');
  CHECK(content(container) == std::string(10, 'a') + b + b + std::string(10, 'c') + b + std::string(10, 'd'));
}

TEST_CASE("append: where a later one lies behind it, what was not filled stays a hole") {
  const Directory directory;
  const auto container = create_container(directory.path() + "/log").value();
  const auto start = [] { return Result<SequencerStart>(SequencerStart{0, 0, 5}); };
  SequencerSlot first = SequencerSlot::take(container->fd(), container->path(), start).value(),
                second = SequencerSlot::take(container->fd(), container->path(), start).value();
  CHECK(first.append(100) == 5);
  CHECK(second.append(50) == 105);
  first.extend(15);
  first.end_append(5, 100, 10);
  CHECK(second.size() == 155);  // bytes 15 to 104 are a hole if the second is written
  second.extend(155);
  second.end_append(105, 50, 50);
  CHECK(first.append(1) == 155);
  first.end_append(155, 1, 0);
  CHECK(first.size() == 155);
  // If it is not written either, all of it is given back.
  CHECK(first.append(100) == 155);
  CHECK(second.append(50) == 255);
  first.extend(165);
  first.end_append(155, 100, 10);
  second.end_append(255, 50, 0);
  CHECK(first.append(1) == 165);
}

TEST_CASE("append: one that waits for its bytes keeps its room while another gives its own back") {
  const Directory directory;
  const auto container = create_container(directory.path() + "/log").value();
  const auto start = [] { return Result<SequencerStart>(SequencerStart{}); };
  SequencerSlot first = SequencerSlot::take(container->fd(), container->path(), start).value(),
                second = SequencerSlot::take(container->fd(), container->path(), start).value();
  CHECK(first.append(100) == 0);
  CHECK(second.append(50) == 100);
  second.end_append(100, 50, 0);
  CHECK(second.append(50) == 100);  // not 0: the first may still fill its room
  second.extend(150);
  second.end_append(100, 50, 50);
  first.extend(100);
  first.end_append(0, 100, 100);
  CHECK(first.size() == 150);
}

TEST_CASE("a container that is in use says EFBIG, EBADF and EEXIST, not EIO, for what they are") {
  const Directory directory;
  const auto made = create_container(directory.path() + "/file");
  REQUIRE(made);
  const auto again = create_container(directory.path() + "/file");
  REQUIRE_FALSE(again);
  CHECK(errno_of(again.error()) == EEXIST);
  const auto nowhere = create_container(directory.path() + "/none/file");
  REQUIRE_FALSE(nowhere);
  CHECK(errno_of(nowhere.error()) == ENOENT);
  const Fd fd(::open((directory.path() + "/file").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto container = SharedContainer::open(fd.get(), [](const std::string&) {}).value();
  OpenWriter* const writer = container->writers().add();
  std::int64_t offset = INT64_MAX - 1;
  CHECK(container->writers().write(*writer, offset, bytes_of("two"), false) == -EFBIG);
  const auto closed = ContainerWriter::open(*made).value();
  REQUIRE(closed->close());
  CHECK(errno_of(closed->write(0, bytes_of("x")).error()) == EBADF);
  // Over and over: the log holds more bytes than a file may have here, the file does not.
  const SizeLimit limit(100'000);
  const std::string block(60'000, 'x');
  for (int n = 0; n < 5; ++n) {
    offset = n;
    CHECK(container->writers().write(*writer, offset, bytes_of(block), false) == 60'000);
  }
  CHECK(container->truncate(nullptr, 100'001) == EFBIG);
  CHECK(container->truncate(nullptr, 100'000) == 0);
  CHECK(container->writers().remove(writer) == 0);
  CHECK(content(*made) == std::string(60'004, 'x') + std::string(39'996, '\0'));
}
