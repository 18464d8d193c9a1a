// A disk in memory that takes as long as a real one: a FUSE file system whose root is that one file.
//
//   slowdisk FILE size=BYTES read=BYTES_PER_S write=BYTES_PER_S latency_us=N seek_us=N channels=N
//
// Mounts itself over the ordinary file FILE, goes to the background, and ends when it is unmounted. With a loop device
// over FILE (losetup --direct-io=on) it is a block device. service.h has the model. It handles no signals: killed, it
// leaves a dead mount, by which `lab down` still finds the loop device.
//
// One thread takes requests in order of arrival and books them; another answers each when its time is over. So any
// number can wait at once without a thread each. Written bytes are in place before a write is answered, so a flush has
// no handler, and Linux counts it as done. Memory is used as the disk fills and given back by a discard.
#define FUSE_USE_VERSION 31
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <queue>
#include <thread>

#include "service.h"

namespace {

/// A request that is being served. For a read the bytes are fetched when it ends.
struct Pending {
  lab::Time end;
  fuse_req_t request;
  bool is_write;
  off_t offset;
  std::size_t bytes;
  bool operator<(const Pending& other) const { return end > other.end; }  // the earliest is on top of the queue
};

fuse_bufvec whole(int fd, off_t offset, std::size_t bytes) {
  fuse_bufvec vector = FUSE_BUFVEC_INIT(bytes);
  vector.buf[0].flags = static_cast<fuse_buf_flags>(FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK);
  vector.buf[0].fd = fd;
  vector.buf[0].pos = offset;
  return vector;
}

class SlowDisk {
 public:
  SlowDisk(int memory, std::uint64_t bytes, const lab::DiskModel& model)
      : memory_(memory), bytes_(bytes), disk_(model) {}

  void start() { answering_ = std::thread(&SlowDisk::answer, this); }

  /// Answers what is still being served, then returns.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    answering_.join();
  }

  [[nodiscard]] struct stat status() const {
    struct stat status {};
    status.st_ino = FUSE_ROOT_ID;
    status.st_mode = S_IFREG | 0600;
    status.st_nlink = 1;
    status.st_size = static_cast<off_t>(bytes_);
    return status;
  }

  void read(fuse_req_t request, std::size_t bytes, off_t offset) {
    const auto at = static_cast<std::uint64_t>(offset);
    add(request, std::min<std::uint64_t>(bytes, at < bytes_ ? bytes_ - at : 0), offset, false);
  }

  void write(fuse_req_t request, fuse_bufvec* data, off_t offset) {
    const std::size_t bytes = fuse_buf_size(data);
    if (static_cast<std::uint64_t>(offset) + bytes > bytes_) {
      fuse_reply_err(request, ENOSPC);
      return;
    }
    fuse_bufvec place = whole(memory_, offset, bytes);
    const ssize_t copied = fuse_buf_copy(&place, data, fuse_buf_copy_flags{});
    if (copied < 0)
      fuse_reply_err(request, static_cast<int>(-copied));
    else
      add(request, static_cast<std::size_t>(copied), offset, true);
  }

  /// A discard. The memory is sealed, so no mode can change its size.
  void allocate(fuse_req_t request, int mode, off_t offset, off_t bytes) const {
    fuse_reply_err(request, ::fallocate(memory_, mode, offset, bytes) == 0 ? 0 : errno);
  }

 private:
  void add(fuse_req_t request, std::size_t bytes, off_t offset, bool is_write) {
    const lab::Time end = disk_.serve(lab::Clock::now(), static_cast<std::uint64_t>(offset), bytes, is_write);
    {
      const std::lock_guard lock(mutex_);
      pending_.push({end, request, is_write, offset, bytes});
    }
    changed_.notify_one();
  }

  void answer() {
    std::unique_lock lock(mutex_);
    while (!stopping_ || !pending_.empty()) {
      if (pending_.empty()) {
        changed_.wait(lock);
      } else if (const Pending next = pending_.top(); lab::Clock::now() < next.end) {
        changed_.wait_until(lock, next.end);
      } else {
        pending_.pop();
        lock.unlock();
        reply(next);
        lock.lock();
      }
    }
  }

  void reply(const Pending& done) const {
    if (done.is_write) {
      fuse_reply_write(done.request, done.bytes);
      return;
    }
    fuse_bufvec data = whole(memory_, done.offset, done.bytes);
    fuse_reply_data(done.request, &data, fuse_buf_copy_flags{});
  }

  const int memory_;
  const std::uint64_t bytes_;
  lab::Disk disk_;  ///< of the thread that takes requests

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::priority_queue<Pending> pending_;
  bool stopping_ = false;

  std::thread answering_;
};

SlowDisk& self(fuse_req_t request) { return *static_cast<SlowDisk*>(fuse_req_userdata(request)); }

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops all{};
  all.init = [](void*, fuse_conn_info* connection) {
    connection->max_write = 1u << 20;
    connection->max_readahead = 0;
    connection->max_background = connection->congestion_threshold = 128;  // as many as a loop device has on the way
    connection->want |= connection->capable & (FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE);
  };
  all.getattr = [](fuse_req_t request, fuse_ino_t, fuse_file_info*) {
    const struct stat status = self(request).status();
    fuse_reply_attr(request, &status, 0);  // never remembered: asking for it shows whether the disk is alive
  };
  all.open = [](fuse_req_t request, fuse_ino_t, fuse_file_info* info) {
    info->direct_io = 1;
    fuse_reply_open(request, info);
  };
  all.read = [](fuse_req_t request, fuse_ino_t, std::size_t bytes, off_t offset, fuse_file_info*) {
    self(request).read(request, bytes, offset);
  };
  all.write_buf = [](fuse_req_t request, fuse_ino_t, fuse_bufvec* data, off_t offset, fuse_file_info*) {
    self(request).write(request, data, offset);
  };
  all.fallocate = [](fuse_req_t request, fuse_ino_t, int mode, off_t offset, off_t bytes, fuse_file_info*) {
    self(request).allocate(request, mode, offset, bytes);
  };
  return all;
}

int refused(const char* what) {
  std::fprintf(stderr, "slowdisk: cannot %s: %s\n", what, std::strerror(errno));
  return 4;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr,
                 "usage: slowdisk FILE size=BYTES read=BYTES_PER_S write=BYTES_PER_S latency_us=N seek_us=N "
                 "channels=N\n");
    return 2;
  }
  const auto given =
      lab::numbers({arguments + 2, arguments + count}, {"size", "read", "write", "latency_us", "seek_us", "channels"});
  const std::uint64_t bytes = given.at("size");
  const int memory = ::memfd_create("slowdisk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0 || ::ftruncate(memory, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(memory, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) != 0)
    return refused("have memory");

  const lab::DiskModel model{.read_bytes_per_s = given.at("read"),
                             .write_bytes_per_s = given.at("write"),
                             .latency = std::chrono::microseconds(given.at("latency_us")),
                             .seek = std::chrono::microseconds(given.at("seek_us")),
                             .channels = given.at("channels")};
  SlowDisk disk(memory, bytes, model);
  const fuse_lowlevel_ops all = operations();
  const char* options[] = {"slowdisk", "-ofsname=iosig-lab,subtype=slowdisk"};
  fuse_args fuse_arguments = FUSE_ARGS_INIT(2, const_cast<char**>(options));
  fuse_session* session = fuse_session_new(&fuse_arguments, &all, sizeof all, &disk);
  if (session == nullptr) return 4;  // libfuse has said why
  if (fuse_session_mount(session, arguments[1]) != 0) return 4;
  if (fuse_daemonize(0) != 0) return refused("go to the background");

  // Writing back dirty pages must not wait for memory that only writing them back sets free.
  ::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
  lab::be_punctual();
  disk.start();
  const int ended = fuse_session_loop(session);
  disk.stop();
  fuse_session_unmount(session);  // it is unmounted already: this sets its memory free
  fuse_session_destroy(session);
  fuse_opt_free_args(&fuse_arguments);
  return ended == 0 ? 0 : 4;
}
