// A container that one process has in use, for all its threads: its writers, one view for all its readers, and what
// stat(2) says, kept up to date while it is written here and looked up anew when others write it. Its functions are the
// system's calls on an ordinary file: the mount and the libraries that stand in for libc are built on it.
#pragma once

#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "iosig/container/admin/container.h"
#include "iosig/container/read/container_view.h"
#include "iosig/container/read/piece_reader.h"
#include "iosig/container/write/container_writer.h"

namespace iosig {

/// The errno that a program gets for it: the error's own, else one for its kind. What is damaged is always EIO.
[[nodiscard]] int errno_of(const Error& error);

/// The writes of one open file, by any of its threads. The dropping is made at the first write.
struct OpenWriter {
  std::mutex mutex;
  std::unique_ptr<ContainerWriter> writer;
};

/// Where a failure's whole message goes, since the caller gets no more than an errno.
using SayFailure = void (*)(const std::string& message);

/// Any thread may call anything. Failures are errno values, 0: none.
class SharedContainer {
 public:
  /// Of the directory that the descriptor is open on, O_PATH will do. Reads fill holes by `fill`.
  static Result<std::shared_ptr<SharedContainer>> open(int directory, SayFailure say, FillHole fill = fill_with_zeros);

  /// One for each file that is opened to write; to be given back.
  [[nodiscard]] OpenWriter* add_writer();
  /// Closes it. What it wrote stays to be synced by sync().
  int remove_writer(OpenWriter* writer);

  /// Makes the dropping, which write() does else. 0 or errno.
  int prepare(OpenWriter& writer);
  /// What was written is in the indices; who writes on begins new droppings. 0 or errno.
  int close_writers();
  /// Bytes written, or -errno. `offset` changes if `appends`.
  [[nodiscard]] std::int64_t write(OpenWriter& to, std::int64_t& offset, std::span<const std::byte> bytes,
                                   bool appends);
  /// Bytes read, or -errno. Every write on this node that ended before, by whatever process, is in them; of other nodes
  /// what refresh_if_older_than() found.
  [[nodiscard]] std::int64_t read(std::int64_t offset, std::span<std::byte> bytes);
  /// The same if that needs no look into the indices anew, which is long; else -EAGAIN.
  [[nodiscard]] std::int64_t read_known(std::int64_t offset, std::span<std::byte> bytes);
  /// What is known of the content, for other processes that open the container at the same time. `infeasible` while
  /// others write, and of a traditional index.
  [[nodiscard]] Result<std::vector<std::byte>> export_index_snapshot();
  /// Of a container of which nothing was asked yet: knows what another process knew, without a look at its indices.
  /// What was written since, is noticed as ever on the same node; on another when it is looked for. false: it is of no
  /// use.
  bool import_index_snapshot(std::span<const std::byte> bytes);
  /// Where the bytes of one dropping are all that is asked for: calls give(descriptor, offset in it, bytes), fewer at
  /// the file's end. false: nothing was called, read() says what there is.
  [[nodiscard]] bool give(std::int64_t offset, std::int64_t length,
                          const std::function<void(int, std::int64_t, std::size_t)>& give);
  /// EFBIG where the file would grow beyond RLIMIT_FSIZE; the caller sends the signal.
  int truncate(OpenWriter* by, std::int64_t size);
  /// As fallocate(2), of which holes and growing are there.
  int allocate(OpenWriter& by, int mode, std::int64_t offset, std::int64_t length);
  /// As lseek(2) with SEEK_DATA or SEEK_HOLE; or -errno.
  [[nodiscard]] std::int64_t seek(std::int64_t offset, int whence);
  /// All that was written through this mount is on the device.
  int sync();
  /// The same when nobody writes any more; closes all writers.
  int finish();

  /// `status`, of a container's directory, is that of the file with this manifest, but for its size and times.
  static void show_manifest(const struct stat& manifest, struct stat& status);
  /// Of an ordinary file with the container's bytes, size and times. Looks for writes of others when what it knows is
  /// older than `age_s`.
  int status(struct stat& status, double age_s);
  /// If it has not done so for `age_s`: looks whether others have written, on other nodes too. 0 or errno.
  int refresh_if_older_than(double age_s);
  /// The same if other nodes have the container open to write: what this node writes is noticed in any case.
  int refresh_from_other_nodes();
  /// Around what orders the accesses of several processes, a lock: if other nodes have the container open, what was
  /// written here is theirs to see, what they wrote is seen, and writes from now on come after it. 0 or errno.
  int refresh_from_other_nodes_now();
  int set_times(const timespec times[2]);
  int set_mode(unsigned mode);
  int set_owner(uid_t user, gid_t group);
  /// Grows whenever the content may have changed.
  [[nodiscard]] std::uint64_t changes() const { return changes_.load(); }

 private:
  SharedContainer(std::shared_ptr<const ContainerDirectory> directory, SayFailure say, FillHole fill);
  int failed(const Error& error) const;
  void drop_privileges() const;
  void touch();
  int find_other_nodes();
  void wrote(std::int64_t begin, std::int64_t end, int fd);
  void changed(std::int64_t begin, std::int64_t end, bool grows);
  void make_stale(std::int64_t begin, std::int64_t end, bool grows);
  void learn_times();
  void notice_others();
  void notice_first_writer();
  bool is_stale(std::int64_t begin, std::int64_t end);
  int failed_at(const PieceFailure& failure) const;
  int open_writer(OpenWriter& writer);
  int close_writer(OpenWriter& writer);
  int refresh_view(std::int64_t begin, std::int64_t end);
  int data_fd(std::int64_t id);
  [[nodiscard]] std::int64_t read_pieces(std::int64_t offset, std::span<std::byte> bytes);
  [[nodiscard]] std::uint64_t fingerprint() const;
  template <class Change>
  int change_pieces(Change&& change) const;

  std::shared_ptr<const ContainerDirectory> directory_;
  const SayFailure say_;
  const FillHole fill_;

  std::mutex nodes_mutex_;
  OtherNodes other_nodes_;

  std::mutex writers_mutex_;  ///< before a writer's own
  std::list<OpenWriter> writers_;
  std::vector<std::int64_t> unsynced_;  ///< writers that were closed since the last sync

  const std::uint64_t owner_;  ///< of our writers, for the watch
  SequencerWatch watch_;
  std::atomic<bool> is_watching_{false};
  std::atomic<std::uint64_t> noticed_{0};              ///< of the watch
  std::atomic<std::int64_t> directory_changed_ns_{0};  ///< while there is nothing to watch

  std::shared_mutex view_mutex_;  ///< exclusive to look anew
  std::unique_ptr<ContainerView> view_;
  std::mutex data_mutex_;  ///< with view_mutex_ shared
  std::map<std::int64_t, Fd> data_;
  std::array<std::atomic<int>, 64> data_fds_;  ///< of the droppings with these ids, once one was opened; else -1

  std::mutex status_mutex_;  ///< the last of all
  ContainerStatus status_;
  bool has_status_ = false;
  int written_fd_ = -1;  ///< the data dropping that has the times of the last write, until status_ has them; else -1
  double looked_s_ = 0;
  std::uint64_t fingerprint_ = 0;
  std::int64_t stale_begin_ = 0, stale_end_ = 0;  ///< the bytes that the view may show as they were
  std::int64_t view_size_ = 0;                    ///< where the view's file ends; 0 while it is read
  std::atomic<bool> has_stale_{true};             ///< false: the view is there and shows all as it is
  std::atomic<std::uint64_t> changes_{1};
};

}  // namespace iosig
