// Fuzzes traces. The first byte says what the rest is: a block's payload; that of sums; chunks (pieces that are cut at
// 0xfe 0xfe: kind and payload), with checksums that fit, behind a sound header; or a whole part.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <memory>

#include "../trace/part_maker.h"
#include "iosig/trace/block_sums.h"
#include "iosig/trace/part.h"
#include "iosig/trace/unpack.h"
#include "property.h"

using namespace iosig;
using namespace iosig::trace;
using fuzz::hold;

namespace {

void try_block(std::string_view text) {
  auto slots = unpack(std::as_bytes(std::span(text)));
  if (!slots) return;
  for (Slot& slot : *slots) slot.flags &= slot_flag_mask;  // a check is not packed
  hold(!slots->empty() && slots->size() <= max_slots, "a block has 1 to max_slots calls");
  const auto packed = test::block_chunk(*slots);
  ChunkHeader header;
  std::memcpy(&header, packed.data(), sizeof header);
  const auto again = unpack(std::span(packed).subspan(sizeof header, header.bytes));
  hold(again && again->size() == slots->size() &&
           std::memcmp(again->data(), slots->data(), slots->size() * sizeof(Slot)) == 0,
       "calls that are packed again are read back");
}

void try_sums(std::span<const std::byte> payload) {
  static const auto sums = std::make_unique<BlockSums>();
  if (!read_sums(payload, *sums)) return;
  hold(sums->kinds > 0 && sums->kinds <= BlockSums::max_kinds && sums->streams <= BlockSums::max_kinds,
       "sums are of no more kinds than they can be");
}

void try_part(std::span<const std::byte> bytes) {
  static const std::string path = [] {
    std::string made = "/tmp/fuzz-trace-XXXXXX";
    hold(::mkdtemp(made.data()) != nullptr, "there is a directory");
    return made;
  }();
  static const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  {
    const Fd file(::openat(directory.get(), "a.part", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    hold(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()), "the part is written");
  }
  const auto part = read_part(directory, "a.part", "a.part");
  if (!part)
    return hold(part.error().message.starts_with("a.part: "), "a refusal names the file", part.error().message);
  if (!*part) return;
  if ((*part)->fault) hold((*part)->fault->at <= bytes.size(), "a fault lies in the part");
  for (const BlockPlace& block : (*part)->blocks) {
    try_sums(std::span((*part)->sums).subspan(block.sums_at, block.sums_bytes));
    const auto calls = read_block(directory, **part, block, "a.part");
    if (calls) hold(calls->size() == block.calls, "a block has as many calls as its header says");
  }
}

}  // namespace

void try_one(std::string_view text) {
  if (text.empty()) return;
  const char what = text.front();
  text.remove_prefix(1);
  if (what == 'b') return try_block(text);
  if (what == 's') return try_sums(std::as_bytes(std::span(text)));
  if (what == 'p') return try_part(std::as_bytes(std::span(text)));
  std::vector<test::Bytes> chunks;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find("\xfe\xfe"), text.size());
    const std::string_view piece = text.substr(0, end);
    if (!piece.empty()) chunks.push_back(test::chunk(static_cast<ChunkKind>(piece.front()), piece.substr(1)));
    text.remove_prefix(std::min(end + 2, text.size()));
  }
  try_part(test::part(test::header_of(9, 42), test::calls(3, 5), chunks));
}
