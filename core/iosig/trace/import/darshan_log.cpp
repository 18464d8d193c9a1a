#include "iosig/trace/import/darshan_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "iosig/base/text.h"

namespace iosig::trace {
namespace {

constexpr std::int64_t magic_number = 6567223;
constexpr std::size_t magic_at = 8, compression_at = 16, names_map_at = 24;
constexpr int known_versions[] = {300, 310, 320, 321, 341};
constexpr std::size_t job_bytes = 4096, metadata_bytes = 1024;
constexpr std::size_t max_names_bytes = std::size_t{1} << 31;
constexpr std::int64_t max_log_seconds = 4'000'000'000;  ///< a time in nanoseconds has room for twice as many
constexpr std::size_t raw_bytes = std::size_t{1} << 16;

/// A module's name and its number in a log of each version: 3.20 has put H5D, 3.41 PNETCDF_VAR before the others.
struct ModuleNumber {
  std::string_view name;
  unsigned before_320, before_341, now;
};
constexpr ModuleNumber modules[] = {
    {"POSIX", 1, 1, 1}, {"MPI-IO", 2, 2, 2}, {"STDIO", 7, 8, 9}, {"DXT_POSIX", 8, 9, 10}, {"DXT_MPIIO", 9, 10, 11}};

/// 341 of "3.41"; 0: it is no version.
int version_in(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return 0;
  const auto major = parse_count<unsigned>(text.substr(0, dot)), minor = parse_count<unsigned>(text.substr(dot + 1));
  return major && minor && *major < 100 && *minor < 100 ? static_cast<int>(*major * 100 + *minor) : 0;
}

std::string_view text_at(std::string_view bytes) { return bytes.substr(0, std::min(bytes.find('\0'), bytes.size())); }

}  // namespace

bool is_darshan(std::string_view start) {
  return start.size() >= magic_at + 8 &&
         (DarshanNumbers(false).at<std::int64_t>(start.data() + magic_at) == magic_number ||
          DarshanNumbers(true).at<std::int64_t>(start.data() + magic_at) == magic_number);
}

DarshanStream::DarshanStream(const DarshanLog& log, const DarshanRegion& region)
    : log_(log),
      at_(region.offset),
      end_(region.offset + region.bytes),
      decompressor_(log.compression_),
      raw_(raw_bytes, '\0') {}

Result<std::size_t> DarshanStream::read(std::span<char> buffer) {
  std::span<char> room = buffer;
  while (!room.empty() && damage_.empty()) {
    if (left_.empty()) {
      if (at_ == end_) {
        if (decompressor_.is_within_stream()) damage_ = fmt::format("byte {}: the compressed data do not end", at_);
        break;
      }
      const std::size_t wanted = std::min<std::uint64_t>(raw_.size(), end_ - at_);
      const ssize_t got = ::pread(log_.file_.get(), raw_.data(), wanted, static_cast<off_t>(at_));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_failure("read", log_.shown_);
      if (got == 0) {
        damage_ = fmt::format("byte {}: the file is cut; expected {} more bytes", at_, end_ - at_);
        break;
      }
      left_ = std::string_view(raw_).substr(0, static_cast<std::size_t>(got));
      at_ += left_.size();
    }
    if (!decompressor_.run(left_, room))
      damage_ = fmt::format("byte {}: the compressed data are damaged", at_ - left_.size());
  }
  return buffer.size() - room.size();
}

Result<DarshanLog> DarshanLog::open(const std::string& path) {
  DarshanLog log;
  log.shown_ = printable(path);
  log.file_ = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!log.file_) return system_failure("open", path);
  struct stat status {};
  if (::fstat(log.file_.get(), &status) != 0) return system_failure("read", path);
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::bad_input, "{}: a log of Darshan is read from a file, not a pipe", log.shown_);
  log.file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  const auto job = log.read_header();
  if (!job) return pass_on(job.error());
  if (auto done = log.read_job(*job); !done) return pass_on(done.error());
  if (auto done = log.read_names(); !done) return pass_on(done.error());
  return log;
}

Result<DarshanLog::Map> DarshanLog::read_header() {
  std::array<char, 1328> header{};
  const ssize_t got = ::pread(file_.get(), header.data(), header.size(), 0);
  if (got < 0) return system_failure("read", shown_);
  const std::string_view found(header.data(), static_cast<std::size_t>(got));
  if (!is_darshan(found)) return fault(magic_at, "no magic number of Darshan ({})", magic_number);
  is_swapped_ = DarshanNumbers(false).at<std::int64_t>(header.data() + magic_at) != magic_number;
  const std::string_view version = text_at(found.substr(0, magic_at));
  version_ = version_in(version);
  if (std::ranges::find(known_versions, version_) == std::end(known_versions))
    return fault(0, "a log of version '{}'; expected 3.00, 3.10, 3.20, 3.21 or 3.41", printable(version));
  const bool is_new = version_ >= 341;
  const std::size_t module_count = is_new ? 64 : 16, maps_at = names_map_at + (is_new ? 8 : 0);
  const std::size_t versions_at = maps_at + 16 * (module_count + 1), end = versions_at + 4 * module_count;
  if (found.size() < end) return fault(found.size(), "cut within the header of {} bytes", end);
  const auto compression = static_cast<unsigned char>(header[compression_at]);
  if (compression > 2)
    return fault(compression_at, "compression {}; expected 0 (zlib), 1 (bzip2) or 2 (none)", compression);
  compression_ = compression == 0 ? Compression::zlib : compression == 1 ? Compression::bzip2 : Compression::none;
  const DarshanNumbers number = numbers();
  const std::uint64_t partial =
      is_new ? number.at<std::uint64_t>(header.data() + 24) : number.at<std::uint32_t>(header.data() + 20);
  const auto map_at = [&](std::size_t index) {
    const char* const at = header.data() + maps_at + 16 * index;
    return Map{number.at<std::uint64_t>(at), number.at<std::uint64_t>(at + 8)};
  };
  std::uint64_t job_end = file_bytes_;
  for (std::size_t index = 0; index <= module_count; ++index) {
    const Map map = map_at(index);
    if (map.bytes > INT64_MAX || map.offset > INT64_MAX - map.bytes || (map.bytes > 0 && map.offset < end))
      return fault(maps_at + 16 * index, "a region of {} bytes at {}, which cannot be", map.bytes, map.offset);
    if (map.bytes > 0) job_end = std::min(job_end, map.offset);
  }
  names_map_ = map_at(0);
  for (std::size_t which = 0; which < std::size(modules); ++which) {
    const ModuleNumber& module = modules[which];
    const unsigned index = version_ < 320 ? module.before_320 : is_new ? module.now : module.before_341;
    const Map map = map_at(index + 1);
    regions_[which] = {module.name, map.offset, map.bytes,
                       number.at<std::uint32_t>(header.data() + versions_at + 4 * std::size_t{index}),
                       (partial >> index & 1) != 0};
  }
  return Map{end, job_end > end ? job_end - end : 0};
}

Result<std::string> DarshanLog::whole_region(const DarshanRegion& region, std::size_t max_bytes) {
  DarshanStream stream(*this, region);
  std::string bytes;
  for (std::size_t filled = 0;;) {
    bytes.resize(std::min(max_bytes, std::max<std::size_t>(2 * filled, job_bytes)));
    const auto got = stream.read(std::span(bytes).subspan(filled));
    if (!got) return pass_on(got.error());
    filled += *got;
    if (filled == bytes.size() && filled < max_bytes) continue;
    bytes.resize(filled);
    damage_ = stream.damage();
    return bytes;
  }
}

Result<void> DarshanLog::read_job(const Map& map) {
  const auto job = whole_region({.name = "job", .offset = map.offset, .bytes = map.bytes}, job_bytes);
  if (!job) return pass_on(job.error());
  const std::size_t fields = version_ >= 341 ? 7 : 5;
  if (job->size() < fields * 8)
    return fault(map.offset, "the job has {} bytes; expected at least {}{}{}", job->size(), fields * 8,
                 damage_.empty() ? "" : "; ", damage_);
  const DarshanNumbers number = numbers();
  const auto field = [&](std::size_t index) { return number.at<std::int64_t>(job->data() + 8 * index); };
  const std::int64_t seconds = field(1), nanoseconds = version_ >= 341 ? field(2) : 0;
  processes_ = field(fields - 2);
  if (seconds <= 0 || seconds > max_log_seconds || nanoseconds < 0 || nanoseconds >= 1'000'000'000)
    return fault(map.offset, "the job began {} s and {} ns after 1970, which cannot be", seconds, nanoseconds);
  if (processes_ <= 0 || processes_ > INT32_MAX)
    return fault(map.offset, "a job of {} processes; expected 1 or more", processes_);
  started_ns_ = seconds * 1'000'000'000 + nanoseconds;
  if (job->size() > fields * 8 + metadata_bytes) {
    const std::string_view rest = text_at(std::string_view(*job).substr(fields * 8 + metadata_bytes));
    command_ = trimmed(rest.substr(0, rest.find('\n')));
  }
  return {};
}

Result<void> DarshanLog::read_names() {
  if (names_map_.bytes == 0) return {};
  const auto bytes =
      whole_region({.name = "names", .offset = names_map_.offset, .bytes = names_map_.bytes}, max_names_bytes);
  if (!bytes) return pass_on(bytes.error());
  const DarshanNumbers number = numbers();
  std::string_view left = *bytes;
  while (left.size() > 8) {
    const auto id = number.at<std::uint64_t>(left.data());
    left.remove_prefix(8);
    std::string_view name;
    if (version_ == 300) {  // the length is told
      const std::uint32_t length = left.size() < 4 ? UINT32_MAX : number.at<std::uint32_t>(left.data());
      if (length > left.size() - std::min<std::size_t>(left.size(), 4)) break;
      name = text_at(left.substr(4, length));
      left.remove_prefix(4 + std::size_t{length});
    } else {
      name = text_at(left);
      if (name.size() == left.size()) break;
      left.remove_prefix(name.size() + 1);
    }
    std::string& known = names_[id];
    if (known.empty()) known = name;
  }
  if (!left.empty() && damage_.empty())
    damage_ = fmt::format("byte {}: the last name of a file is cut", names_map_.offset + names_map_.bytes);
  return {};
}

const std::string* DarshanLog::name_of(std::uint64_t record) const {
  const auto known = names_.find(record);
  return known == names_.end() || known->second.empty() ? nullptr : &known->second;
}

}  // namespace iosig::trace
