#include "iosig/trace/trace.h"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <memory>
#include <queue>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/trace/part_bytes.h"

namespace iosig::trace {
namespace {

constexpr unsigned part_bits = 20;  ///< of an access's id: the part; the others are the call's id in it

/// This machine's clocks, if it is still in that boot and has a time stamp counter.
std::optional<ClockPair> clocks_now(std::uint64_t boot) {
#if defined(__x86_64__)
  if (boot == 0 || boot != boot_number(boot_id())) return std::nullopt;
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return ClockPair{__rdtsc(), static_cast<std::uint64_t>(unix_ns(time))};
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
    if (!name.ends_with(".part")) continue;
    has_parts = true;
    auto part = read_part(trace.directory_, name, shown);
    if (!part) {
      trace.unreadable_.push_back({name, part.error()});
      continue;
    }
    if (!*part) continue;
    if (trace.parts_.size() == std::size_t{1} << part_bits)
      return fail(ErrorKind::bad_input, "{}: more than {} parts", printable(trace.path_), 1u << part_bits);
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
      // A second is long enough for 1e-7; else this machine's clocks, if it is the same, are a longer way off.
      if (of_boot.last.monotonic_ns - of_boot.first.monotonic_ns < 1'000'000'000)
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

Result<void> Trace::for_each(const std::function<Result<void>(const Access&)>& take, const Selection& selection,
                             std::vector<Error>& faults) const {
  std::vector<std::uint32_t> sound_blocks(parts_.size(),
                                          UINT32_MAX);  // of each part: the number before the first fault
  struct Open {                                         // a batch that is being passed on
    std::uint32_t part;
    std::int32_t tid;
    std::vector<std::pair<std::int64_t, PartCall>> calls;
    std::size_t next = 0;
  };
  const auto is_later = [](const std::unique_ptr<Open>& a, const std::unique_ptr<Open>& b) {
    const auto key = [](const Open& open) {
      const auto& [start_ns, call] = open.calls[open.next];
      return std::tuple(start_ns, open.part, call.id);
    };
    return key(*a) > key(*b);
  };
  std::vector<std::unique_ptr<Open>> open;  // a heap
  std::unordered_map<const Process*, std::unordered_map<std::uint32_t, std::uint32_t>> path_of_file;
  for (std::size_t next = 0; next < batches_.size() || !open.empty();) {
    if (next < batches_.size() &&
        (open.empty() || batches_[next].start_ns <= open.front()->calls[open.front()->next].first)) {
      const Batch& batch = batches_[next++];
      if (batch.block != loose_calls && batch.block >= sound_blocks[batch.part]) continue;
      const Part& part = parts_[batch.part];
      auto begun = std::make_unique<Open>();
      begun->part = batch.part;
      begun->tid = batch.block == loose_calls ? part.header.tid : part.blocks[batch.block].tid;
      std::vector<PartCall> calls;
      if (batch.block == loose_calls) {
        calls = part.loose;
      } else {
        auto read = read_block(directory_, part, part.blocks[batch.block], shown(part));
        if (!read) {
          faults.push_back(std::move(read.error()));
          sound_blocks[batch.part] = std::min(sound_blocks[batch.part], batch.block);
          continue;
        }
        calls = std::move(*read);
      }
      for (PartCall& call : calls) begun->calls.emplace_back(clocks_[batch.part].at(call.slot.start), call);
      std::ranges::sort(begun->calls, [](const auto& a, const auto& b) {
        return std::pair(a.first, a.second.id) < std::pair(b.first, b.second.id);
      });
      open.push_back(std::move(begun));
      std::ranges::push_heap(open, is_later);
      continue;
    }
    std::ranges::pop_heap(open, is_later);
    Open& first = *open.back();
    const auto& [start_ns, call] = first.calls[first.next];
    const Slot& slot = call.slot;
    Access access;
    access.id = std::uint64_t{first.part} << (64 - part_bits) | call.id;
    access.parent = call.parent == 0 ? 0 : std::uint64_t{first.part} << (64 - part_bits) | call.parent;
    access.process = &process_of(parts_[first.part]);
    access.tid = first.tid;
    access.call = slot.call;
    access.flags = slot.flags;
    access.file = slot.file;
    access.fd = slot.fd;
    access.offset = slot.offset;
    access.length = slot.length;
    access.start_ns = start_ns;
    access.is_in_flight = slot.end == 0;
    access.end_ns = access.is_in_flight ? 0 : clocks_[first.part].at(slot.end);
    access.result = slot.result;
    std::uint32_t path = slot.path;
    if (slot.file != 0) {
      auto& paths = path_of_file[access.process];
      if (path != 0)
        paths[slot.file] = path;
      else if (const auto known = paths.find(slot.file); known != paths.end())
        path = known->second;
    }
    if (const auto known = access.process->names.find(path); known != access.process->names.end())
      access.path = known->second;
    bool is_selected = !selection.layer || layer_of(slot.call) == *selection.layer;
    if (is_selected && !selection.files.empty()) {
      std::string name(access.path);
      if (selection.files.find('/') == std::string::npos) name = name.substr(name.rfind('/') + 1);
      is_selected = ::fnmatch(selection.files.c_str(), name.c_str(), 0) == 0;
    }
    if (is_selected)
      if (auto taken = take(access); !taken) return taken;
    if (++first.next == first.calls.size())
      open.pop_back();
    else
      std::ranges::push_heap(open, is_later);
  }
  return {};
}

}  // namespace iosig::trace
