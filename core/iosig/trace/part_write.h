// Writes parts of traces on behalf of other processes (part_layout.h has the layout, part_bytes.h the bytes).
//
//   PartWriter  calls that are over, with known times: for importers of other tools' traces
//   LivePart    calls that are being made: for a daemon that answers them. Its latest calls are in mapped pages of the
//               file, which survive a kill of the daemon
//
// A program that traces itself writes its parts by runtime/preload/trace/thread_part.cpp, which may not allocate.
//
// Neither keeps a descriptor open: the file is opened again, as the same file, for each 576 calls. So there can be as
// many as there is memory: 36 KB each if they have that many calls, a few hundred bytes after flush() or unmap().
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/result.h"
#include "iosig/trace/pack.h"
#include "iosig/trace/part_bytes.h"

namespace iosig::trace {

/// Facts of a process: `program`, `directory`, `rank`, `size`, `argument` (each), and variables of the job.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Memory for packing, which all parts of a thread share.
struct Packing {
  PackMemory memory{};
  std::array<Slot, max_slots> slots{};
  std::array<std::byte, max_packed_bytes> packed{};
};

/// A new file of a trace.
class PartFile {
 public:
  /// Makes the file of the part `number` (from 1) of its process in `directory`, which must outlive the object and is
  /// called `shown` in messages. Fails with `system`, also if there is such a file.
  [[nodiscard]] static Result<PartFile> make(const Fd& directory, std::string_view shown, const PartIdentity& identity,
                                             std::uint32_t number);
  /// Opens it to read and write. Fails with ESTALE if its name leads to another file now, **which must not be
  /// written**.
  [[nodiscard]] Result<Fd> open() const;
  /// Writes all bytes at `offset`.
  [[nodiscard]] Result<void> put(std::span<const std::byte> bytes, std::uint64_t offset) const;
  /// Adds chunks to the end.
  [[nodiscard]] Result<void> append(std::span<const std::byte> chunks);
  /// Removes it: it could not be begun.
  void remove() const;
  [[nodiscard]] std::uint64_t chunks_end() const { return chunks_end_; }
  [[nodiscard]] const std::string& shown() const { return shown_; }

 private:
  const Fd* directory_ = nullptr;
  std::string name_, shown_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::uint64_t chunks_end_ = chunks_offset;
};

class PartWriter {
 public:
  /// As PartFile::make.
  [[nodiscard]] static Result<PartWriter> make(const Fd& directory, std::string_view shown,
                                               const PartIdentity& identity, std::uint32_t number = 1);

  /// Once for each process.
  void add_facts(const Facts& facts);
  /// A path of the process, before the first call that has its id (from 1, the same in all parts of the process).
  void add_name(std::uint32_t id, std::string_view path);
  /// Adds a call that has ended; its start is not 0. Best in the order of starts. `id` (of the call in the part; 0: the
  /// next number) is what `parent` of calls below it refers to. Ids that are given differ, are greater than their
  /// parents', and by less than 2^31 from those of the 576 calls before. Returns the id.
  /// Fails if the file cannot be written: up to 576 calls are lost then.
  [[nodiscard]] Result<std::uint64_t> add(Slot call, std::uint64_t id, Packing& packing);
  void count_lost(std::uint64_t calls) { header_.lost_calls += calls; }
  /// Writes what was added, and frees the memory.
  [[nodiscard]] Result<void> flush(Packing& packing);
  /// Writes what was added, and marks the part as complete: its thread ended. Without it the part is readable, too.
  [[nodiscard]] Result<void> close(Packing& packing);

 private:
  [[nodiscard]] Result<void> pack_calls(Packing& packing);
  void add_chunk(ChunkKind kind, std::span<const std::byte> head, std::string_view rest);

  PartFile file_;
  PartHeader header_{};
  std::vector<Slot> calls_;
  std::vector<std::byte> chunks_;  ///< not written yet
  std::uint64_t last_id_ = 0, greatest_end_ = 0;
};

class LivePart {
 public:
  /// Makes the part with its first slots mapped. Fails as PartFile::make, and if the file system is full.
  [[nodiscard]] static Result<LivePart> make(const Fd& directory, std::string_view shown, const PartIdentity& identity,
                                             std::uint32_t number = 1);

  /// Begins a call; sets its id. Returns the id in the part; 0: the call is lost, and counted.
  [[nodiscard]] std::uint64_t begin(Slot call, Packing& packing);
  /// Returns a call that has begun and not ended, for additions.
  [[nodiscard]] Slot& open_call(std::uint64_t id);
  void end(std::uint64_t id, std::int64_t result, std::uint64_t end);
  void count_lost(std::uint64_t calls) { header().lost_calls += calls; }
  [[nodiscard]] std::uint64_t lost_calls() { return header().lost_calls; }
  [[nodiscard]] bool has_open_calls() const { return !open_.empty(); }

  void add_facts(const Facts& facts);
  /// As PartWriter::add_name. The name is in the file when this returns.
  void add_name(std::uint32_t id, std::string_view path);

  /// Releases the mapped pages; only without open calls. No other function but map() may be called then.
  void unmap() { pages_.reset(); }
  [[nodiscard]] bool is_mapped() const { return pages_ != nullptr; }
  [[nodiscard]] Result<void> map();

  /// Packs the calls so far, because those that follow are another thread's. Only without open calls.
  void pass_to(std::int32_t tid, Packing& packing);
  /// Marks the part as complete and makes its file small. Only without open calls; none follow.
  void close(Packing& packing);

 private:
  struct Unmap {
    void operator()(std::byte* pages) const;
  };
  struct OpenCall {
    std::uint64_t id;
    std::uint32_t slot;
  };
  [[nodiscard]] PartHeader& header() { return *reinterpret_cast<PartHeader*>(pages_.get()); }
  [[nodiscard]] Slot* slots() { return reinterpret_cast<Slot*>(pages_.get() + slots_offset); }
  void add_chunk(ChunkKind kind, std::span<const std::byte> head, std::string_view rest);
  void append_pending();
  [[nodiscard]] bool grow();
  /// Appends the calls that have ended as a block.
  [[nodiscard]] Result<void> append(std::span<const std::byte> chunks);
  [[nodiscard]] bool append_ended(Packing& packing);
  /// Empties the slots but those of open calls.
  void empty_slots();
  void pack_slots(Packing& packing);

  PartFile file_;
  std::unique_ptr<std::byte, Unmap> pages_;
  std::vector<OpenCall> open_;
  std::uint64_t last_id_ = 0;
  std::uint32_t used_ = 0, limit_ = first_slots, pending_ = 0;
};

}  // namespace iosig::trace
