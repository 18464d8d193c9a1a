#include "iosig/trace/import/recorder_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "iosig/base/text.h"
#include "iosig/trace/import/decompress.h"

namespace iosig::trace {
namespace {

constexpr std::uint64_t max_section_bytes = std::uint64_t{1} << 30, max_metadata_bytes = 1 << 20;
constexpr std::size_t function_name_bytes = 64, old_names_at = 1024;
constexpr std::int32_t max_ranks = 1 << 24;

/// Takes numbers, in the byte order of this machine, from the front of bytes.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : all_(bytes) {}
  template <class Number>
  bool take(Number& into) {
    if (left() < sizeof into) return false;
    std::memcpy(&into, all_.data() + at_, sizeof into);
    at_ += sizeof into;
    return true;
  }
  bool take(std::string_view& into, std::size_t bytes) {
    if (left() < bytes) return false;
    into = all_.substr(at_, bytes);
    at_ += bytes;
    return true;
  }
  [[nodiscard]] std::size_t left() const { return all_.size() - at_; }
  [[nodiscard]] std::size_t at() const { return at_; }

 private:
  std::string_view all_;
  std::size_t at_ = 0;
};

bool has_file(const Fd& directory, const char* name) {
  struct stat status {};
  return ::fstatat(directory.get(), name, &status, 0) == 0 && S_ISREG(status.st_mode);
}

/// Arguments end with a blank each. The number of the function has one byte, or four in later versions: the length
/// of the arguments, which must reach to the end, tells.
bool read_signature(std::string_view key, RecorderSignature& into) {
  for (const std::size_t function_bytes : {std::size_t{1}, std::size_t{4}}) {
    Bytes bytes(key);
    std::uint8_t depth = 0, count = 0, short_number = 0;
    std::int32_t length = 0;
    RecorderSignature found;
    if (!bytes.take(found.tid)) return false;
    if (function_bytes == 1 ? !bytes.take(short_number) : !bytes.take(found.function)) continue;
    if (function_bytes == 1) found.function = short_number;
    if (!bytes.take(depth) || !bytes.take(count) || !bytes.take(length)) continue;
    if (length < 0 || static_cast<std::size_t>(length) != bytes.left()) continue;
    found.depth = depth;
    const std::string_view text = key.substr(bytes.at());
    for (const std::string_view each : split(text, ' ')) found.arguments.emplace_back(each);
    found.arguments.pop_back();  // behind the last blank
    if (found.arguments.size() != count || (count > 0 && !text.ends_with(' ')) || found.function < 0) continue;
    into = std::move(found);
    return true;
  }
  return false;
}

}  // namespace

bool is_recorder_directory(const std::string& path) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return directory && (has_file(directory, "recorder.mt") || has_file(directory, "recorder.dat"));
}

Result<RecorderLog> RecorderLog::open(const std::string& path) {
  RecorderLog log;
  log.shown_ = printable(without_trailing_slashes(path));
  log.directory_ = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!log.directory_) return system_failure("open", path);
  bool is_old = false;
  if (has_file(log.directory_, "recorder.dat")) {
    if (auto done = log.read_sections(); !done) return pass_on(done.error());
  } else if (has_file(log.directory_, "VERSION")) {
    const auto text = log.read({.name = "VERSION", .offset = 0, .bytes = UINT64_MAX}, 64);
    if (!text) return pass_on(text.error());
    const bool is_new_layout = has_file(log.directory_, "recorder.ts");
    if (!text->starts_with("3.") && !(text->starts_with("2.5") && is_new_layout))
      return fail(ErrorKind::bad_input, "{}/VERSION: a log of Recorder '{}'; expected version 3", log.shown_,
                  printable(trimmed(*text)));
    is_old = true;
  }
  if (auto done = log.read_metadata(is_old); !done) return pass_on(done.error());
  return log;
}

Result<void> RecorderLog::read_sections() {
  const Place file{.name = "recorder.dat", .offset = 0, .bytes = UINT64_MAX};
  const auto head = read(file, max_metadata_bytes);
  if (!head) return pass_on(head.error());
  Bytes bytes(*head);
  std::string_view magic;
  std::uint32_t version = 0, count = 0;
  if (!bytes.take(magic, 8) || magic != "RECORDER" || !bytes.take(version) || !bytes.take(count))
    return fault(file, 0, "expected 'RECORDER', a version and the number of sections");
  if (version != 1) return fault(file, 8, "version {} of the format; expected 1", version);
  for (std::uint32_t number = 0; number < count; ++number) {
    Entry entry;
    entry.place.name = file.name;
    if (!bytes.take(entry.section) || !bytes.take(entry.rank) || !bytes.take(entry.place.offset) ||
        !bytes.take(entry.place.bytes) || entry.place.offset > INT64_MAX || entry.place.bytes > INT64_MAX)
      return fault(file, bytes.at(), "section {} of {} is cut, or cannot be", number + 1, count);
    sections_.push_back(std::move(entry));
  }
  if (sections_.empty()) return fault(file, 12, "no section");
  return {};
}

Result<RecorderLog::Place> RecorderLog::place_of(Section section, std::int32_t rank) {
  if (!sections_.empty()) {
    const auto found = std::ranges::find_if(
        sections_, [&](const Entry& each) { return each.section == section && each.rank == rank; });
    if (found == sections_.end())
      return fail(ErrorKind::bad_input, "{}/recorder.dat: no section {} of rank {}", shown_,
                  static_cast<std::uint32_t>(section), rank);
    return found->place;
  }
  Place place{.name = {}, .offset = 0, .bytes = UINT64_MAX};
  switch (section) {
    case metadata: place.name = "recorder.mt"; break;
    case timestamps: place.name = "recorder.ts"; break;
    case all_signatures: place.name = "recorder.cst"; break;
    case grammars: place.name = "ug.cfg"; break;
    case grammar_numbers: place.name = "ug.mt"; break;
    case rank_signatures: place.name = fmt::format("{}.cst", rank); break;
    case rank_grammar: place.name = fmt::format("{}.cfg", rank); break;
  }
  return place;
}

Result<std::string> RecorderLog::read(const Place& place, std::uint64_t limit) {
  const Fd file(::openat(directory_.get(), place.name.c_str(), O_RDONLY | O_CLOEXEC));
  const std::string path = fmt::format("{}/{}", shown_, place.name);
  if (!file) return system_failure("open", path);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_failure("read", path);
  if (!S_ISREG(status.st_mode)) return fail(ErrorKind::bad_input, "{}: no regular file", path);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  const std::uint64_t there = size > place.offset ? size - place.offset : 0;
  std::string bytes(std::min({place.bytes, there, limit}), '\0');
  for (std::size_t filled = 0; filled < bytes.size();) {
    const ssize_t got =
        ::pread(file.get(), bytes.data() + filled, bytes.size() - filled, static_cast<off_t>(place.offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", path);
    if (got == 0) bytes.resize(filled);
    filled += static_cast<std::size_t>(got);
  }
  return bytes;
}

Result<std::string> RecorderLog::read_compressed(Place& place) {
  Place sizes = place;
  const auto head = read(sizes, 16);
  if (!head) return pass_on(head.error());
  std::uint64_t compressed = 0, plain = 0;
  Bytes bytes(*head);
  if (!bytes.take(compressed) || !bytes.take(plain))
    return fault(place, 0, "cut; expected the sizes of compressed data");
  if (plain > max_section_bytes || compressed > max_section_bytes)
    return fault(place, 0, "{} bytes, {} compressed: too many", plain, compressed);
  place.offset += 16, place.bytes -= std::min<std::uint64_t>(place.bytes, 16);
  const auto raw = read(place, compressed);
  if (!raw) return pass_on(raw.error());
  if (raw->size() < compressed) return fault(place, raw->size(), "cut; expected {} bytes", compressed);
  Decompressor decompressor(Compression::zlib);
  std::string_view left = *raw;
  std::string out;
  while (out.size() < plain && !left.empty()) {
    // In steps: a size that is wrong takes no memory.
    const std::size_t filled = out.size(),
                      step = std::min<std::size_t>(plain - filled, std::max<std::size_t>(filled, 1 << 16));
    out.resize(filled + step);
    std::span<char> room = std::span(out).subspan(filled);
    const bool is_sound = decompressor.run(left, room);
    out.resize(out.size() - room.size());
    if (!is_sound) return fault(place, compressed - left.size(), "the compressed data are damaged");
  }
  if (out.size() < plain)
    return fault(place, compressed, "{} bytes of compressed data; expected {}", out.size(), plain);
  place.offset += compressed, place.bytes -= std::min(place.bytes, compressed);
  return out;
}

Result<void> RecorderLog::read_metadata(bool is_old) {
  const auto place = place_of(metadata, -1);
  if (!place) return pass_on(place.error());
  const auto text = read(*place, max_metadata_bytes);
  if (!text) return pass_on(text.error());
  Bytes bytes(*text);
  std::int32_t version[3] = {3, 0, 0}, count = 0;
  if (!is_old && (!bytes.take(version) || version[0] != 3))
    return fault(*place, 0, "a log of Recorder {}; expected version 3", version[0]);
  // Flags of what was traced fill 12 bytes, with zeros. Those behind the size of a buffer: compressed times, one set of
  // signatures for all ranks, offsets that depend on the rank (they say so themselves), or on earlier ones of the rank.
  std::string_view flags;
  std::int32_t buffer = 0;
  if (!bytes.take(ranks_) || (!is_old && !bytes.take(count)) || !bytes.take(flags, 12) || !bytes.take(started_s_) ||
      !bytes.take(tick_s_) || !bytes.take(buffer) || !bytes.take(flags, 4))
    return fault(*place, bytes.at(), "cut within the metadata");
  has_compressed_times_ = flags[0] != 0, is_shared_ = flags[1] != 0, has_relative_offsets_ = flags[3] != 0;
  if (ranks_ <= 0 || ranks_ > max_ranks) return fault(*place, 0, "{} ranks; expected 1 to {}", ranks_, max_ranks);
  if (!std::isfinite(started_s_) || started_s_ <= 0 || started_s_ > 4e9)
    return fault(*place, 0, "it began {} s after 1970, which cannot be", started_s_);
  if (!std::isfinite(tick_s_) || tick_s_ <= 0 || tick_s_ > 1)
    return fault(*place, 0, "a tick of {} s, which cannot be", tick_s_);
  const auto add = [&](std::string_view name) {
    if (name.starts_with("PMPI_")) name.remove_prefix(1);
    functions_.emplace_back(name);
  };
  if (!is_old) {
    for (std::string_view name; count > 0; --count) {
      if (!bytes.take(name, function_name_bytes)) return fault(*place, bytes.at(), "cut within the names of functions");
      add(name.substr(0, std::min(name.find('\0'), name.size())));
    }
    return {};
  }
  std::string_view names = std::string_view(*text).substr(bytes.at());
  // Version 3 keeps the first 1024 bytes for itself, 2.5 does not.
  if (names.empty() || names.front() == '\0')
    names = std::string_view(*text).substr(std::min(text->size(), old_names_at));
  for (const std::string_view name : split(names, '\n')) add(name);
  return {};
}

std::string_view RecorderLog::function(std::int32_t number) const {
  return number >= 0 && static_cast<std::size_t>(number) < functions_.size()
             ? std::string_view(functions_[static_cast<std::size_t>(number)])
             : std::string_view();
}

Result<std::vector<RecorderSignature>> RecorderLog::signatures(std::int32_t rank) {
  auto place = is_shared_ ? place_of(all_signatures, -1) : place_of(rank_signatures, rank);
  if (!place) return pass_on(place.error());
  const auto text = read_compressed(*place);
  if (!text) return pass_on(text.error());
  Bytes bytes(*text);
  std::int32_t count = 0;
  if (!bytes.take(count) || count < 0 || static_cast<std::size_t>(count) > text->size() / 16)
    return fault(*place, 0, "{} signatures in {} bytes", count, text->size());
  std::vector<RecorderSignature> signatures(static_cast<std::size_t>(count));
  for (std::int32_t number = 0; number < count; ++number) {
    std::int32_t id = 0, of_rank = 0, key_bytes = 0, uses = 0;
    std::string_view key;
    if (!bytes.take(id) || !bytes.take(of_rank) || !bytes.take(key_bytes) || !bytes.take(uses) || key_bytes < 0 ||
        !bytes.take(key, static_cast<std::size_t>(key_bytes)) || id < 0 || id >= count ||
        !read_signature(key, signatures[static_cast<std::size_t>(id)]))
      return fault(*place, 0, "signature {} of {} is cut, or cannot be (decompressed byte {})", number + 1, count,
                   bytes.at());
  }
  return signatures;
}

Result<RecorderLog::Place> RecorderLog::grammar_place(std::int32_t rank) {
  if (!is_shared_) return place_of(rank_grammar, rank);
  auto numbers = place_of(grammar_numbers, -1);
  if (!numbers) return numbers;
  const auto before = 4 * static_cast<std::uint64_t>(rank);
  numbers->offset += before, numbers->bytes -= std::min(numbers->bytes, before);
  std::int32_t number = 0;
  const auto text = read(*numbers, sizeof number);
  if (!text) return pass_on(text.error());
  if (Bytes bytes(*text); !bytes.take(number) || number < 0 || number >= ranks_)
    return fault(*numbers, 0, "no number of a grammar for rank {}", rank);
  // Grammars follow one another, each with its size.
  auto next = place_of(grammars, -1);
  if (!next) return next;
  if (!grammar_places_.empty()) next = grammar_places_.back();
  while (grammar_places_.size() <= static_cast<std::size_t>(number)) {
    std::uint64_t bytes = 0;
    if (!grammar_places_.empty()) {
      const auto head = read(*next, sizeof bytes);
      if (!head) return pass_on(head.error());
      if (!Bytes(*head).take(bytes) || bytes > max_section_bytes)
        return fault(*next, 0, "grammar {} is not there, or too large", grammar_places_.size() - 1);
      bytes += 16;
    }
    next->offset += bytes, next->bytes -= std::min(next->bytes, bytes);
    grammar_places_.push_back(*next);
  }
  return grammar_places_[static_cast<std::size_t>(number)];
}

Result<RecorderGrammar> RecorderLog::grammar(std::int32_t rank) {
  auto place = grammar_place(rank);
  if (!place) return pass_on(place.error());
  const auto text = read_compressed(*place);
  if (!text) return pass_on(text.error());
  Bytes bytes(*text);
  RecorderGrammar grammar;
  std::int32_t rules = 0;
  bool is_sound = bytes.take(rules) && rules >= 0;
  for (; is_sound && rules > 0; --rules) {
    std::int32_t id = 0, count = 0;
    is_sound = bytes.take(id) && bytes.take(count) && count >= 0 && static_cast<std::size_t>(count) <= bytes.left() / 8;
    if (!is_sound) break;
    RecorderGrammar::Symbols& symbols = grammar.rules[id];
    symbols.resize(static_cast<std::size_t>(count));
    for (auto& [symbol, times] : symbols) is_sound = is_sound && bytes.take(symbol) && bytes.take(times) && times >= 0;
  }
  if (!is_sound) return fault(*place, 0, "the grammar of rank {} is cut, or cannot be", rank);
  return grammar;
}

Result<RecorderLog::Place> RecorderLog::times_place(std::int32_t rank) {
  if (times_places_.empty()) {
    auto place = place_of(timestamps, -1);
    if (!place) return place;
    const auto all = static_cast<std::uint64_t>(ranks_) * 8;
    const auto head = read(*place, all);
    if (!head) return pass_on(head.error());
    if (head->size() < all) return fault(*place, head->size(), "cut; expected the sizes of {} ranks", ranks_);
    Bytes sizes(*head);
    Place of_rank{.name = place->name, .offset = place->offset + all, .bytes = 0};
    std::vector<Place> places;
    for (std::int32_t each = 0; each < ranks_; ++each) {
      of_rank.offset += of_rank.bytes;
      if (!sizes.take(of_rank.bytes) || of_rank.bytes > INT64_MAX / 4 || of_rank.offset > INT64_MAX / 4)
        return fault(*place, 8 * static_cast<std::uint64_t>(each), "{} bytes of rank {}: too many", of_rank.bytes,
                     each);
      places.push_back(of_rank);
    }
    times_places_ = std::move(places);
  }
  return times_places_[static_cast<std::size_t>(rank)];
}

Result<std::vector<RecorderTimes>> RecorderLog::times(std::int32_t rank, std::string& damage) {
  auto found = times_place(rank);
  if (!found) return pass_on(found.error());
  Place of_rank = *found;
  std::string bytes;
  if (!has_compressed_times_) {
    auto read_bytes = read(of_rank, max_section_bytes);
    if (!read_bytes) return pass_on(read_bytes.error());
    bytes = std::move(*read_bytes);
    if (bytes.size() < of_rank.bytes)
      damage = fmt::format("{}/{}: cut at byte {}", shown_, of_rank.name, of_rank.offset + bytes.size());
  } else {
    while (of_rank.bytes > 0 && damage.empty() && bytes.size() < max_section_bytes) {
      const auto piece = read_compressed(of_rank);
      if (piece)
        bytes += *piece;
      else
        damage = piece.error().message;
    }
  }
  std::vector<RecorderTimes> times(bytes.size() / sizeof(RecorderTimes));
  if (!times.empty()) std::memcpy(times.data(), bytes.data(), times.size() * sizeof(RecorderTimes));
  return times;
}

}  // namespace iosig::trace
