#include "iosig/trace/trace.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "iosig/base/json_text.h"
#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/trace/accesses.h"
#include "iosig/trace/clock_pair.h"
#include "iosig/trace/part_bytes.h"

namespace iosig::trace {
namespace {

/// The clocks that `iosig trace` read before the program started, if the manifest has those of that boot.
std::optional<ClockPair> clocks_in(const std::string& manifest, std::uint64_t boot) {
  const nlohmann::ordered_json document = parse_json(manifest, 8);
  if (boot == 0 || !document.is_object() || !document.contains("clock")) return std::nullopt;
  const nlohmann::ordered_json& clock = document["clock"];
  const auto number = [&](const char* key) -> std::uint64_t {
    return clock.is_object() && clock.contains(key) && clock[key].is_number_unsigned() ? clock[key].get<std::uint64_t>()
                                                                                       : 0;
  };
  const ClockPair pair{number("ticks"), number("monotonic_ns")};
  return number("boot") == boot && pair.ticks != 0 && pair.monotonic_ns != 0 ? std::optional(pair) : std::nullopt;
}

constexpr std::uint64_t max_counters_bytes = std::uint64_t{1} << 30;
constexpr std::size_t max_parts = std::size_t{1} << (64 - call_id_bits);

/// This machine's clocks, if it is still in that boot and has a time stamp counter.
std::optional<ClockPair> clocks_now(std::uint64_t boot) {
#if defined(__x86_64__)
  if (boot == 0 || boot != boot_number(boot_id())) return std::nullopt;
  return clock_pair(read_tsc);
#else
  (void)boot;
  return std::nullopt;
#endif
}

/// What parts of one boot have in common.
struct SharedClock {
  ClockPair first{UINT64_MAX, 0}, last{};
  std::uint64_t first_monotonic_ns = UINT64_MAX;
  std::int64_t realtime_behind_ns = 0;  ///< CLOCK_REALTIME - CLOCK_MONOTONIC
  std::string host;

  void add(ClockPair pair) {
    if (pair.ticks < first.ticks) first = pair;
    if (pair.ticks > last.ticks) last = pair;
  }
};

}  // namespace

std::int64_t Trace::Clock::at(std::uint64_t ticks_then) const {
  const auto passed = static_cast<std::int64_t>(ticks_then - ticks);
  if (ns_per_tick == 1) return ns + passed;
  return ns + static_cast<std::int64_t>(std::llround(static_cast<long double>(passed) * ns_per_tick));
}

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
    else if (key == "replaced")
      process.replaced_code.insert(value);
    else
      process.variables.emplace_back(key, value);
  }
}

void Trace::set_clocks() {
  // Parts of hosts whose boot is not known have a clock of their own.
  std::map<std::pair<std::uint64_t, std::uint64_t>, SharedClock> shared;
  const auto key_of = [](const Part& part) {
    const std::uint64_t own = part.header.boot != 0 ? 0 : part.header.process;
    return std::pair(part.header.boot, own);
  };
  for (const Part& part : parts_) {
    SharedClock& clock = shared[key_of(part)];
    clock.add(part.header.first);
    clock.add(part.last_clock);
    if (part.header.clock == ClockKind::tsc)
      if (const auto before = clocks_in(manifest_, part.header.boot)) clock.add(*before);
    clock.host = part.host;
    if (part.header.first.monotonic_ns < clock.first_monotonic_ns) {
      clock.first_monotonic_ns = part.header.first.monotonic_ns;
      clock.realtime_behind_ns = static_cast<std::int64_t>(part.header.realtime_ns - part.header.first.monotonic_ns);
    }
  }
  for (const Part& part : parts_) {
    SharedClock& of_boot = shared[key_of(part)];
    Clock clock;
    clock.ticks = part.header.first.ticks;
    clock.ns = static_cast<std::int64_t>(part.header.first.monotonic_ns) + of_boot.realtime_behind_ns;
    if (part.header.clock == ClockKind::tsc) {
      // The rate comes from the trace, so that it is the same whenever the trace is read: an error of 50 ns in a pair
      // is one of 50 ns at the end of the trace. Only if a killed process left a single pair, this machine's clocks,
      // if it is still the same boot, are the other one.
      if (of_boot.last.ticks == of_boot.first.ticks)
        if (const auto now = clocks_now(part.header.boot)) of_boot.add(*now);
      const std::uint64_t ticks = of_boot.last.ticks - of_boot.first.ticks;
      if (ticks > 0 && of_boot.last.monotonic_ns > of_boot.first.monotonic_ns)
        clock.ns_per_tick = static_cast<long double>(of_boot.last.monotonic_ns - of_boot.first.monotonic_ns) /
                            static_cast<long double>(ticks);
      else if (std::ranges::find(hosts_without_clock_, of_boot.host) == hosts_without_clock_.end())
        hosts_without_clock_.push_back(of_boot.host);
      // All parts of a boot count from the same moment.
      clock.ticks = of_boot.first.ticks;
      clock.ns = static_cast<std::int64_t>(of_boot.first.monotonic_ns) + of_boot.realtime_behind_ns;
    }
    clocks_.push_back(clock);
  }
}

void Trace::list_batches() {
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
  started_ns_ = batches_.empty() ? 0 : batches_.front().start_ns;
  for (Batch& batch : batches_) batch.start_ns -= started_ns_;
  for (Clock& clock : clocks_) clock.ns -= started_ns_;
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
