#include "iosig/format/read_model.h"

#include <utility>

#include "iosig/base/crc32c.h"
#include "iosig/base/text.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/model/literals.h"

namespace iosig {
namespace {

constexpr std::string_view model_magic = "IOM";
constexpr std::uint8_t model_version = 1;
constexpr std::uint8_t kind_pattern = 0, kind_blocks = 1;
constexpr std::size_t model_checksum_bytes = 4;

bool has_columns_of_reads(const Pattern& pattern) {
  bool has_offset = false, has_length = false;
  for (std::uint32_t column = 0; column < pattern.columns; ++column) {
    has_offset = has_offset || pattern.kinds[column] == Column::logical;
    has_length = has_length || pattern.kinds[column] == Column::length;
  }
  return has_offset && has_length;
}

void append_blocks(const BlockTransitions& blocks, std::vector<std::uint8_t>& bytes) {
  append_varint(static_cast<std::uint64_t>(blocks.block_bytes), bytes);
  append_varint(blocks.transitions.size(), bytes);
  std::int64_t before = 0;
  for (const BlockTransition& each : blocks.transitions) {
    append_varint(static_cast<std::uint64_t>(each.from - before), bytes);
    append_varint(zigzag(each.to - each.from - 1), bytes);
    append_varint(each.count, bytes);
    before = each.from;
  }
}

class ModelReader {
 public:
  ModelReader(std::span<const std::uint8_t> bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  Result<ReadModel> model() {
    if (auto read = header(); !read) return pass_on(std::move(read.error()));
    const auto count = number("the number of files");
    if (!count) return pass_on(count.error());
    ReadModel model;
    for (std::uint64_t n = 0; n < *count; ++n) {
      auto read = file();
      if (!read) return pass_on(std::move(read.error()));
      if (!model.files.empty() && model.files.back().path >= read->path)
        return refuse(fmt::format("'{}' after '{}': expected paths in order, each once", printable(read->path),
                                  printable(model.files.back().path)));
      model.files.push_back(std::move(*read));
    }
    if (at_ != bytes_.size()) return refuse("more bytes than the files that it declares");
    return model;
  }

 private:
  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view what) const {
    return fail(ErrorKind::bad_input, "{}: byte {}: {}", source_, at_, what);
  }

  Result<void> header() {
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    if (!text.starts_with(model_magic))
      return refuse("this is not a model of reads; expected it to begin with \"IOM\"");
    at_ = model_magic.size();
    if (at_ == bytes_.size()) return refuse("it is cut after the magic; make it again");
    if (bytes_[at_] != model_version)
      return refuse(fmt::format("version {} of the format; this program reads {}", bytes_[at_], model_version));
    ++at_;
    if (bytes_.size() < at_ + model_checksum_bytes) return refuse("it is cut; make it again");
    const auto held = bytes_.last(model_checksum_bytes);
    bytes_ = bytes_.first(bytes_.size() - model_checksum_bytes);
    const std::uint32_t found =
        held[0] | std::uint32_t{held[1]} << 8 | std::uint32_t{held[2]} << 16 | std::uint32_t{held[3]} << 24;
    if (found != crc32c(bytes_)) return refuse("its checksum does not fit: it was cut or changed; make it again");
    return {};
  }

  Result<std::uint64_t> number(std::string_view what) {
    const auto found = read_varint(bytes_, at_);
    if (!found) return refuse(fmt::format("{} is cut or too large", what));
    return *found;
  }

  /// The number of bytes of `what`, which follow.
  Result<std::span<const std::uint8_t>> counted_bytes(std::string_view what) {
    const auto size = number(fmt::format("the size of {}", what));
    if (!size) return pass_on(size.error());
    if (*size > bytes_.size() - at_) return refuse(fmt::format("{} of {} bytes is cut", what, *size));
    const auto found = bytes_.subspan(at_, *size);
    at_ += *size;
    return found;
  }

  Result<FileReads> file() {
    const auto path = counted_bytes("a path");
    if (!path) return pass_on(path.error());
    if (path->empty()) return refuse("a file without a path");
    FileReads made{.path = {path->begin(), path->end()}, .model = {}};
    if (at_ == bytes_.size()) return refuse("it ends after a path");
    const std::uint8_t kind = bytes_[at_++];
    if (kind == kind_pattern) {
      const auto bytes = counted_bytes("a pattern");
      if (!bytes) return pass_on(bytes.error());
      auto pattern = pattern_from_bytes(*bytes, "the pattern");
      if (!pattern) return refuse(fmt::format("'{}': {}", printable(made.path), pattern.error().message));
      if (!has_columns_of_reads(*pattern)) return refuse("a pattern without the columns logical and length");
      made.model = std::move(*pattern);
      return made;
    }
    if (kind != kind_blocks) return refuse(fmt::format("a model of kind {}: expected 0 or 1", kind));
    auto read = blocks();
    if (!read) return pass_on(std::move(read.error()));
    made.model = std::move(*read);
    return made;
  }

  Result<BlockTransitions> blocks() {
    const auto block_bytes = number("the size of blocks");
    if (!block_bytes) return pass_on(block_bytes.error());
    if (*block_bytes == 0 || *block_bytes > INT64_MAX) return refuse("blocks of an impossible size");
    BlockTransitions made{.block_bytes = static_cast<std::int64_t>(*block_bytes), .transitions = {}};
    const std::uint64_t last_block = (INT64_MAX - 1) / *block_bytes;
    const auto count = number("the number of steps");
    if (!count) return pass_on(count.error());
    for (std::uint64_t n = 0; n < *count; ++n) {
      const auto ahead = read_varint(bytes_, at_), step = read_varint(bytes_, at_), times = read_varint(bytes_, at_);
      if (!ahead || !step || !times) return refuse("a step from block to block is cut");
      const BlockTransition* const before = made.transitions.empty() ? nullptr : &made.transitions.back();
      const std::int64_t from_before = before == nullptr ? 0 : before->from;
      if (*ahead > last_block - static_cast<std::uint64_t>(from_before)) return refuse("a block beyond 2^63 - 1 bytes");
      BlockTransition each{.from = from_before + static_cast<std::int64_t>(*ahead)};
      if (__builtin_add_overflow(each.from + 1, unzigzag(*step), &each.to) || each.to < 0 ||
          static_cast<std::uint64_t>(each.to) > last_block)
        return refuse("a step to a block that no file can have");
      if (*times == 0 || *times > UINT32_MAX) return refuse("a step that was taken 0 times, or more than 2^32 - 1");
      each.count = static_cast<std::uint32_t>(*times);
      if (before != nullptr && before->from == each.from && before->to >= each.to)
        return refuse("steps out of order: expected them by block, each once");
      made.transitions.push_back(each);
    }
    return made;
  }

  std::span<const std::uint8_t> bytes_;
  std::string_view source_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::uint8_t> read_model_bytes(const ReadModel& model) {
  std::vector<std::uint8_t> bytes(model_magic.begin(), model_magic.end());
  bytes.push_back(model_version);
  append_varint(model.files.size(), bytes);
  for (const FileReads& file : model.files) {
    append_varint(file.path.size(), bytes);
    bytes.insert(bytes.end(), file.path.begin(), file.path.end());
    if (const auto* const pattern = std::get_if<Pattern>(&file.model)) {
      bytes.push_back(kind_pattern);
      const std::vector<std::uint8_t> packed = pattern_bytes(*pattern);
      append_varint(packed.size(), bytes);
      bytes.insert(bytes.end(), packed.begin(), packed.end());
    } else {
      bytes.push_back(kind_blocks);
      append_blocks(std::get<BlockTransitions>(file.model), bytes);
    }
  }
  const std::uint32_t checksum = crc32c(bytes);
  for (std::size_t n = 0; n < model_checksum_bytes; ++n)
    bytes.push_back(static_cast<std::uint8_t>(checksum >> (8 * n)));
  return bytes;
}

Result<ReadModel> read_model_from_bytes(std::span<const std::uint8_t> bytes, std::string_view source) {
  return ModelReader(bytes, source).model();
}

}  // namespace iosig
