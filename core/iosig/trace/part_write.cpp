#include "iosig/trace/part_write.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "iosig/base/machine.h"
#include "iosig/base/size_limit.h"

namespace iosig::trace {
namespace {

constexpr std::uint64_t id_distance = std::uint64_t{1} << 31;  ///< ids of calls that are packed together differ by less
constexpr std::size_t max_waiting_bytes = std::size_t{256} << 10;  ///< of chunks that are not written yet
constexpr std::size_t max_fact_bytes = 3000;                       ///< they fit in the first page

std::uint64_t id_base(std::uint64_t last_id) { return last_id > id_distance ? last_id - id_distance : 0; }

/// "<host>.<pid>.<process>.<number>.part", as the recorder names its files.
std::string part_name(const PartIdentity& identity, std::uint32_t number) {
  std::string host(identity.host.substr(0, sizeof PartHeader{}.host - 1));
  std::ranges::replace_if(
      host, [](char each) { return each == '/' || each == '\0'; }, '_');
  return fmt::format("{}.{}.{:x}.{}.part", host, identity.pid, identity.process, number);
}

/// Texts "key=value", each ended by NUL. What is too much is left out, arguments first.
std::string text_of(const Facts& facts) {
  std::string text;
  for (const bool are_arguments : {false, true})
    for (const auto& [key, value] : facts)
      if ((key == "argument") == are_arguments && text.size() + key.size() + value.size() + 2 <= max_fact_bytes)
        text += fmt::format("{}={}", key, value.substr(0, value.find('\0'))) + '\0';
  return text;
}

std::span<const std::byte> bytes_of(const auto& value) { return std::as_bytes(std::span(&value, 1)); }

/// Makes the file's bytes from `first` to `end` real: a mapped hole of a full file system would be a SIGBUS.
Result<void> fill_with_zeros(const PartFile& file, std::size_t first, std::size_t end) {
  static constexpr std::array<std::byte, chunks_offset> zeros{};
  return file.put(std::span(zeros).first(end - first), first);
}

}  // namespace

Result<PartFile> PartFile::make(const Fd& directory, std::string_view shown, const PartIdentity& identity,
                                std::uint32_t number) {
  PartFile made;
  made.directory_ = &directory;
  made.name_ = part_name(identity, number);
  made.shown_ = fmt::format("{}/{}", shown, made.name_);
  const Fd file(
      ::openat(directory.get(), made.name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return system_failure("make", made.shown_);
  write_in_place(file.get());
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_failure("inspect", made.shown_);
  made.device_ = status.st_dev;
  made.inode_ = status.st_ino;
  return made;
}

Result<Fd> PartFile::open() const {
  Fd file(::openat(directory_->get(), name_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return system_failure("open", shown_);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_failure("inspect", shown_);
  if (status.st_dev != device_ || status.st_ino != inode_) return system_failure("open", shown_, ESTALE);
  return file;
}

Result<void> PartFile::put(std::span<const std::byte> bytes, std::uint64_t offset) const {
  if (exceeds_size_limit(static_cast<std::int64_t>(offset + bytes.size())))  // SIGXFSZ would end the program
    return system_failure("write", shown_, EFBIG);
  const auto file = open();
  if (!file) return pass_on(file.error());
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(file->get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return system_failure("write", shown_, put == 0 ? ENOSPC : errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

Result<void> PartFile::append(std::span<const std::byte> chunks) {
  if (auto done = put(chunks, chunks_end_); !done) return done;
  chunks_end_ += chunks.size();
  return {};
}

void PartFile::remove() const { ::unlinkat(directory_->get(), name_.c_str(), 0); }

Result<PartWriter> PartWriter::make(const Fd& directory, std::string_view shown, const PartIdentity& identity,
                                    std::uint32_t number) {
  auto file = PartFile::make(directory, shown, identity, number);
  if (!file) return pass_on(file.error());
  PartWriter made;
  made.file_ = std::move(*file);
  made.header_ = part_header(identity);
  auto done = made.file_.put(bytes_of(made.header_), 0);
  if (done) return made;
  made.file_.remove();
  return pass_on(done.error());
}

void PartWriter::add_chunk(ChunkKind kind, std::span<const std::byte> head, std::string_view rest) {
  const std::size_t before = chunks_.size();
  chunks_.resize(before + chunk_bytes(head.size() + rest.size()));
  put_chunk(kind, head, rest, chunks_.data() + before);
}

void PartWriter::add_facts(const Facts& facts) { add_chunk(ChunkKind::process, {}, text_of(facts)); }

void PartWriter::add_name(std::uint32_t id, std::string_view path) {
  add_chunk(ChunkKind::name, bytes_of(NameChunk{.path = id}), path);
}

Result<std::uint64_t> PartWriter::add(Slot call, std::uint64_t id, Packing& packing) {
  if (calls_.size() == max_slots)
    if (auto done = pack_calls(packing); !done) return pass_on(done.error());
  if (id == 0) id = last_id_ + 1;
  last_id_ = std::max(last_id_, id);
  greatest_end_ = std::max(greatest_end_, call.end);
  call.id = static_cast<std::uint32_t>(id);
  calls_.push_back(call);
  return id;
}

Result<void> PartWriter::pack_calls(Packing& packing) {
  if (!calls_.empty()) {
    const ClockPair now{greatest_end_, greatest_end_};
    const std::size_t bytes =
        pack(calls_, header_.tid, id_base(last_id_), header_.clock == ClockKind::nanoseconds ? now : header_.first,
             {.has_sums = true}, packing.memory, packing.packed);
    calls_.clear();
    chunks_.insert(chunks_.end(), packing.packed.begin(), packing.packed.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
  if (chunks_.size() < max_waiting_bytes) return {};
  auto done = file_.append(chunks_);
  chunks_.clear();
  return done;
}

Result<void> PartWriter::flush(Packing& packing) {
  auto packed = pack_calls(packing);
  calls_ = {};
  if (packed && !chunks_.empty()) packed = file_.append(chunks_);
  chunks_ = {};
  return packed;
}

Result<void> PartWriter::close(Packing& packing) {
  if (auto done = flush(packing); !done) return done;
  if (header_.clock == ClockKind::nanoseconds && greatest_end_ > header_.first.ticks)
    header_.latest = {greatest_end_, greatest_end_};
  header_.is_closed = 1;
  if (file_.chunks_end() > chunks_offset) header_.chunks_end = file_.chunks_end();
  return file_.put(bytes_of(header_), 0);
}

void LivePart::Unmap::operator()(std::byte* pages) const { ::munmap(pages, chunks_offset); }

Result<LivePart> LivePart::make(const Fd& directory, std::string_view shown, const PartIdentity& identity,
                                std::uint32_t number) {
  auto file = PartFile::make(directory, shown, identity, number);
  if (!file) return pass_on(file.error());
  LivePart made;
  made.file_ = std::move(*file);
  auto done = fill_with_zeros(made.file_, 0, slots_offset + first_slots * sizeof(Slot));
  if (done) done = made.map();
  if (!done) {
    made.file_.remove();
    return pass_on(done.error());
  }
  made.header() = part_header(identity);
  made.header().slot_capacity = first_slots;
  return made;
}

Result<void> LivePart::map() {
  const auto file = file_.open();
  if (!file) return pass_on(file.error());
  void* const mapped = ::mmap(nullptr, chunks_offset, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
  if (mapped == MAP_FAILED) return system_failure("map", file_.shown());
  pages_.reset(static_cast<std::byte*>(mapped));
  return {};
}

std::uint64_t LivePart::begin(Slot call, Packing& packing) {
  if (used_ == limit_ && (limit_ == max_slots || !grow())) pack_slots(packing);
  if (used_ == limit_) {
    count_lost(1);
    return 0;
  }
  const std::uint64_t id = ++last_id_;
  Slot& slot = slots()[used_];
  open_.push_back({id, used_++});
  const std::uint64_t start = std::exchange(call.start, 0);
  call.id = static_cast<std::uint32_t>(id);
  call.end = 0;
  slot = call;
  std::atomic_signal_fence(std::memory_order_release);
  slot.start = start;  // last: it makes the slot one
  return id;
}

Slot& LivePart::open_call(std::uint64_t id) {
  const auto open = std::ranges::find(open_, id, &OpenCall::id);
  assert(open != open_.end());
  return slots()[open->slot];
}

void LivePart::end(std::uint64_t id, std::int64_t result, std::uint64_t end) {
  Slot& slot = open_call(id);
  slot.result = result;
  slot.flags = checked_flags(slot, end, slot.flags);
  std::atomic_signal_fence(std::memory_order_release);
  slot.end = end;
  std::erase_if(open_, [&](const OpenCall& each) { return each.id == id; });
}

bool LivePart::grow() {
  if (!fill_with_zeros(file_, slots_offset + first_slots * sizeof(Slot), chunks_offset)) return false;
  header().slot_capacity = limit_ = max_slots;
  return true;
}

void LivePart::append_pending() {
  std::byte* const chunks = pages_.get() + pending_offset;
  if (pending_ > 0) (void)append({chunks, pending_});
  std::memset(chunks, 0, sizeof(ChunkHeader));
  pending_ = 0;
}

bool LivePart::append_ended(Packing& packing) {
  append_pending();
  std::uint32_t ended = 0;
  for (const Slot& slot : std::span(slots(), used_))
    if (slot.start != 0 && slot.end != 0) packing.slots[ended++] = slot;
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const auto now = static_cast<std::uint64_t>(unix_ns(time));
  header().latest = {now, now};
  if (ended == 0) return true;
  const std::size_t bytes = pack({packing.slots.data(), ended}, header().tid, id_base(last_id_), {now, now},
                                 {.has_sums = true}, packing.memory, packing.packed);
  return append(std::span(packing.packed).first(bytes)).has_value();
}

Result<void> LivePart::append(std::span<const std::byte> chunks) {
  if (auto done = file_.append(chunks); !done) return done;
  header().chunks_end = file_.chunks_end();
  return {};
}

void LivePart::empty_slots() {
  // An open call's slot is not before its place in the list.
  for (std::uint32_t n = 0; n < open_.size(); ++n) {
    if (open_[n].slot != n) slots()[n] = slots()[open_[n].slot];
    open_[n].slot = n;
  }
  for (auto n = static_cast<std::uint32_t>(open_.size()); n < used_; ++n) slots()[n].start = slots()[n].end = 0;
  used_ = static_cast<std::uint32_t>(open_.size());
}

void LivePart::pack_slots(Packing& packing) {
  if (!append_ended(packing)) count_lost(used_ - open_.size());
  empty_slots();
}

void LivePart::add_chunk(ChunkKind kind, std::span<const std::byte> head, std::string_view rest) {
  constexpr std::size_t room = page_bytes - pending_offset;
  const std::size_t whole = chunk_bytes(head.size() + rest.size());
  if (pending_ + whole > room) append_pending();
  if (whole > room) {
    std::vector<std::byte> chunk(whole);
    put_chunk(kind, head, rest, chunk.data());
    (void)append(chunk);
    return;
  }
  std::byte* const at = pages_.get() + pending_offset + pending_;
  if (pending_ + whole + sizeof(ChunkHeader) <= room) std::memset(at + whole, 0, sizeof(ChunkHeader));
  put_chunk(kind, head, rest, at);
  pending_ += static_cast<std::uint32_t>(whole);
}

void LivePart::add_facts(const Facts& facts) { add_chunk(ChunkKind::process, {}, text_of(facts)); }

void LivePart::add_name(std::uint32_t id, std::string_view path) {
  add_chunk(ChunkKind::name, bytes_of(NameChunk{.path = id}), path);
}

void LivePart::pass_to(std::int32_t tid, Packing& packing) {
  pack_slots(packing);
  header().tid = tid;
}

void LivePart::close(Packing& packing) {
  const bool is_small = limit_ == first_slots && file_.chunks_end() == chunks_offset;  // its two pages are all of it
  if (!is_small && append_ended(packing)) {
    empty_slots();
    if (const auto file = file_.open(); file)
      (void)::fallocate(file->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, slots_offset,
                        chunks_offset - slots_offset);
  }
  header().is_closed = 1;
}

}  // namespace iosig::trace
