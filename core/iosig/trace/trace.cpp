#include "iosig/trace/trace.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstring>

#include "iosig/base/text.h"
#include "iosig/trace/accesses.h"
#include "iosig/trace/part_bytes.h"

namespace iosig::trace {
namespace {

constexpr std::uint64_t max_counters_bytes = std::uint64_t{1} << 30;
constexpr std::size_t max_parts = std::size_t{1} << (64 - call_id_bits);

}  // namespace

std::string Trace::shown(const Part& part) const { return fmt::format("{}/{}", path_, part.name); }

Result<std::vector<PartCall>> Trace::calls_of(std::size_t part, std::size_t block) const {
  const Part& of = parts_[part];
  return read_block(directory_, of, of.blocks[block], shown(of));
}

Result<Trace> Trace::open(const std::string& directory) {
  Trace trace;
  trace.path_ = without_trailing_slashes(directory);
  trace.directory_ = Fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!trace.directory_) return system_failure("open", directory);
  auto names = names_in(trace.directory_);
  if (!names) return pass_on(names.error());
  std::ranges::sort(*names);
  bool has_parts = false;
  for (const std::string& name : *names) {
    const std::string shown = fmt::format("{}/{}", trace.path_, name);
    if (name == "manifest.json") {
      auto text = read_file_in(trace.directory_, name, shown, 1u << 20);
      if (!text) return pass_on(text.error());
      trace.manifest_ = std::move(*text);
    }
    if (name == unrecorded_name) trace.read_unrecorded(shown);
    if (name == counters_name) {
      const auto text = read_file_in(trace.directory_, name, shown, max_counters_bytes);
      if (!text) return pass_on(text.error());
      auto counters = parse_counters(*text, shown);
      if (!counters) return pass_on(counters.error());
      trace.counters_ = std::move(*counters);
    }
    if (!name.ends_with(".part")) continue;
    has_parts = true;
    auto part = read_part(trace.directory_, name, shown);
    if (!part) {
      trace.unreadable_.push_back({name, part.error()});
      continue;
    }
    if (!*part) continue;
    if (trace.parts_.size() == max_parts)
      return fail(ErrorKind::bad_input, "{}: more than {} parts", printable(trace.path_), max_parts);
    trace.add_process(**part);
    (*part)->names = {};
    trace.parts_.push_back(std::move(**part));
  }
  if (trace.parts_.empty() && !trace.unreadable_.empty()) return pass_on(trace.unreadable_.front().error);
  if (!has_parts && trace.manifest_.empty())
    return fail(ErrorKind::bad_input, "'{}' is no trace: it has no files *.part; 'iosig trace -o DIR' makes one",
                printable(directory));
  trace.set_clocks();
  trace.list_batches();
  align({&trace, 1});
  return trace;
}

/// Reads the count of what has no part. A file that is none counts nothing.
void Trace::read_unrecorded(const std::string& shown) {
  const auto bytes = read_file_in(directory_, unrecorded_name, shown, sizeof(Unrecorded));
  if (!bytes || bytes->size() != sizeof(Unrecorded)) return;
  Unrecorded read{};
  std::memcpy(&read, bytes->data(), sizeof read);
  if (!std::ranges::equal(read.magic, unrecorded_magic)) return;
  unrecorded_processes_ = read.processes;
  unrecorded_calls_ = read.calls;
}

std::uint64_t Trace::missing_parts() const {
  std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> of_processes;  // greatest number, parts
  for (const Part& part : parts_) {
    const std::string_view stem = std::string_view(part.name).substr(0, part.name.size() - std::strlen(".part"));
    auto& [greatest, parts] = of_processes[part.header.process];
    greatest =
        std::max<std::uint64_t>(greatest, parse_count<std::uint32_t>(stem.substr(stem.rfind('.') + 1)).value_or(0));
    ++parts;
  }
  std::uint64_t missing = 0;
  for (const auto& [process, known] : of_processes)
    if (known.first > known.second) missing += known.first - known.second;
  return missing > unreadable_.size() ? missing - unreadable_.size() : 0;
}

namespace {

/// `fact`: lines, bytes of code, source and object, separated by tabs. Added once: the facts may be there twice.
void add_selected_code(Process& process, const std::string& fact) {
  const std::vector<std::string_view> fields = split(fact, '\t');
  if (fields.size() < 4) return;
  SelectedCode code;
  code.lines = parse_count<std::uint64_t>(fields[0]).value_or(0);
  code.code_bytes = parse_count<std::uint64_t>(fields[1]).value_or(0);
  code.source = fields[2];
  code.object = fields[3];
  const auto is_same = [&](const SelectedCode& known) {
    return known.source == code.source && known.object == code.object;
  };
  if (std::ranges::none_of(process.selected_code, is_same)) process.selected_code.push_back(std::move(code));
}

}  // namespace

void Trace::add_process(const Part& part) {
  Process& process = processes_[part.header.process];
  process.key = part.header.process;
  process.host = part.host;
  process.pid = part.header.pid;
  process.parent_pid = part.header.parent_pid;
  for (const auto& [id, path] : part.names) process.names.emplace(id, path);
  OpenPlaceReader places(process.open_places);
  for (const auto& [key, value] : part.facts) {
    if (key == "program")
      process.program = value;
    else if (key == "directory")
      process.directory = value;
    else if (key == "argument")
      process.arguments.push_back(value);
    else if (key == "rank" || key == "size")
      (key == "rank" ? process.rank : process.ranks) = parse_count<std::uint32_t>(value);
    else if (key == "source")
      add_selected_code(process, value);
    else if (key == "no-lines")
      process.has_no_lines = true;
    else if (key == "object")
      places.add_object(value);
    else if (key == "opened")
      places.add_place(value);
    else if (key == "replaced")
      process.replaced_code.insert(value);
    else
      process.variables.emplace_back(key, value);
  }
}

void Trace::list_batches() {
  batches_.clear();
  for (std::uint32_t number = 0; number < parts_.size(); ++number) {
    const Part& part = parts_[number];
    for (std::uint32_t block = 0; block < part.blocks.size(); ++block)
      batches_.push_back({clocks_[number].at(part.blocks[block].least_start), number, block});
    if (part.loose.empty()) continue;
    std::uint64_t least = UINT64_MAX;
    for (const PartCall& call : part.loose) least = std::min(least, call.slot.start);
    batches_.push_back({clocks_[number].at(least), number, loose_calls});
  }
  std::ranges::stable_sort(batches_, {}, &Batch::start_ns);
  const std::int64_t first_ns = batches_.empty() ? 0 : batches_.front().start_ns;
  started_ns_ += first_ns;
  for (Batch& batch : batches_) batch.start_ns -= first_ns;
  for (Clock& clock : clocks_) clock.ns -= first_ns;
}

bool matches_file(const std::string& glob, std::string_view path) {
  if (glob.find('/') == std::string::npos) path.remove_prefix(path.rfind('/') + 1);
  return ::fnmatch(glob.c_str(), std::string(path).c_str(), 0) == 0;
}

Result<void> Trace::for_each(const std::function<Result<void>(const Access&)>& take, const Selection& selection,
                             std::vector<Error>& faults) const {
  Accesses accesses(*this, selection, faults);
  while (const Access* const access = accesses.next())
    if (auto taken = take(*access); !taken) return taken;
  return {};
}

}  // namespace iosig::trace
