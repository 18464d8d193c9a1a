#include "iosig/observe/infer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig::observe {
namespace {

constexpr double nearly_all = 0.9;     ///< a share from which the others are exceptions
constexpr double once = 0.92;          ///< the confidence in a number that was measured exactly, in one run
constexpr double repeatedly = 0.97;    ///< in several runs or files, always the same
constexpr double if_incomplete = 0.6;  ///< factor if the trace has lost calls
constexpr double if_killed = 0.9;      ///< factor if the run was killed: every call that returned is there
constexpr double least_think_s = 0.5;
constexpr double if_mapped = 0.6;  ///< factor if loads and stores are not seen

std::string percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

std::string count_of(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

/// Returns part / whole; 0 of nothing.
double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// The files of one family in all runs.
class Group {
 public:
  struct Member {
    const TracedRun* run;
    const StreamFacts* facts;
    const Transfers* transfers;
  };

  void add(const TracedRun& run, const StreamFacts& facts) {
    const Transfers& each = *facts.transfers();
    members.push_back({&run, &facts, &each});
    reads += each.reads, writes += each.writes;
    read_bytes += each.read_bytes, written_bytes += each.written_bytes;
    forward += each.forward, first_jumps += each.first_jumps;
    followed += each.followed, contiguous += each.contiguous, same_stride += each.same_stride;
    aligned += each.aligned, waited += each.waited, syncs += facts.syncs;
    sizes.add(each.sizes);
    is_complete = is_complete && run.is_complete;
    is_killed = is_killed || run.is_killed;
    has_all_calls = has_all_calls && run.has_all_calls;
    sequences += each.sequences;
    is_mapped = is_mapped || facts.mapped_bytes > 0;
    is_counted = is_counted || each.is_counted;
    has_unknown_order = has_unknown_order || each.has_unknown_order;
    has_unknown_sizes = has_unknown_sizes || each.has_unknown_sizes;
  }

  [[nodiscard]] std::uint64_t count() const { return reads + writes; }
  /// Lowers a confidence for what may be missing in the traces.
  [[nodiscard]] double trusted(double confidence) const {
    return confidence * (is_complete ? 1 : if_incomplete) * (is_killed ? if_killed : 1) * (is_mapped ? if_mapped : 1);
  }
  [[nodiscard]] bool all(auto is_true) const { return std::ranges::all_of(members, is_true); }

  std::vector<Member> members;
  std::uint64_t reads = 0, writes = 0, read_bytes = 0, written_bytes = 0;
  std::uint64_t sequences = 0, followed = 0, contiguous = 0, forward = 0, first_jumps = 0, same_stride = 0, aligned = 0,
                waited = 0, syncs = 0;
  SizeCounts sizes;
  bool is_complete = true, is_killed = false, has_all_calls = true, is_mapped = false;
  bool is_counted = false, has_unknown_order = false, has_unknown_sizes = false;  ///< as Transfers'; of any file
};

/// Whether the data are deleted with the job. `temp` loses data where it is wrong: `finalize` drops them. So it needs
/// that all files of the family are gone, and that no name that the next run may give is caught by chance.
void find_lifetime(const Group& group, bool has_open_end, InferredStream& stream) {
  const auto is_removed = [](const Group::Member& each) { return each.facts->is_removed; };
  if (group.writes == 0) {
    if (std::ranges::any_of(group.members, is_removed)) stream.remarks.emplace_back("removed by the run that read it");
    return;  // the data exist before the job: their lifetime is not the job's to decide
  }
  if (group.is_counted) {
    stream.remarks.emplace_back("from counters alone: nothing is known of the life of the data");
    return;
  }
  if (!group.has_all_calls) {
    stream.remarks.emplace_back("the trace has selected calls only: nothing is known of the life of the data");
    return;
  }
  const auto may_remain = [](const Group::Member& each) { return each.facts->may_remain; };
  const auto removed = static_cast<std::size_t>(std::ranges::count_if(group.members, is_removed));
  if (removed == group.members.size() && std::ranges::none_of(group.members, may_remain)) {
    const bool is_made =
        group.all([](const Group::Member& each) { return each.facts->is_created && !each.facts->was_there; });
    // A name that was there may have been a symbolic link, which alone is gone then.
    std::string why =
        is_made ? "made, written and removed in the run" : "written and removed in the run; but it existed before";
    double confidence = is_made ? 0.95 : 0.55;
    if (group.is_killed) confidence *= if_incomplete;
    if (group.syncs + group.waited > 0) {
      // A journal is removed, too, and is all that repairs the data after a crash. It is one unless nothing could find
      // it again: made under a new name, synced once, and read back in the run.
      const bool is_scratch = group.waited == 0 && group.all([](const Group::Member& each) {
        return each.facts->is_created_exclusively && each.facts->syncs <= 1 &&
               each.transfers->read_bytes >= each.transfers->written_bytes;
      });
      why += is_scratch ? ", read back, but synced" : "; but synced, as a journal that repairs data after a crash";
      confidence = std::min(confidence, is_scratch ? 0.75 : 0.55);
    }
    if (has_open_end) {
      why += "; but its glob may match other files, which would be dropped, too";
      confidence = std::min(confidence, 0.55);
    }
    stream.findings.push_back({"temp", group.trusted(confidence), std::move(why)});
    return;
  }
  // Another process that reads what was written, in this run or another one, shows that it is wanted.
  std::set<std::uint64_t> readers, writers;
  for (const Group::Member& each : group.members) {
    readers.insert(each.transfers->readers.begin(), each.transfers->readers.end());
    writers.insert(each.transfers->writers.begin(), each.transfers->writers.end());
  }
  const bool is_read_later = !std::ranges::includes(writers, readers), is_synced = group.syncs > 0;
  const std::string& path = group.members.front().facts->path;
  const bool is_in_tmp = is_below(path, "/tmp") || is_below(path, "/var/tmp") || is_below(path, "/dev/shm");
  std::string why = removed == 0 ? "still there at the end of the run"
                                 : fmt::format("{} of {} files are still there at the end",
                                               group.members.size() - removed, group.members.size());
  const bool is_in_memory = is_below(path, "/dev/shm");
  const double confidence = is_in_memory    ? 0.45
                            : removed > 0   ? 0.6
                            : is_read_later ? 0.95
                            : is_synced     ? 0.92
                            : is_in_tmp     ? 0.6
                                            : 0.85;
  if (is_read_later)
    why += ", and read by another process than its writer";
  else if (is_synced)
    why += ", and made durable by fsync";
  if (is_in_memory)
    why += "; but it lies in memory, which no power failure spares";
  else if (is_in_tmp)
    why += "; but it lies in a directory for temporary files";
  stream.findings.push_back({"persist", group.trusted(confidence), std::move(why)});
}

/// Whether all nodes must see it.
void find_visibility(const Group& group, std::size_t hosts_of_job, InferredStream& stream) {
  std::size_t most = 0;
  for (const Group::Member& each : group.members) most = std::max(most, each.transfers->hosts.size());
  if (most > 1)
    stream.findings.push_back({"global", 0.95, fmt::format("processes of {} nodes access one file", most)});
  else if (hosts_of_job > 1 && !stream.findings.empty() && stream.findings.front().word == "temp")
    stream.findings.push_back(
        {"local", group.trusted(0.85), fmt::format("no file is accessed by more than one of {} nodes", hosts_of_job)});
}

void find_order(const Group& group, InferredStream& stream) {
  if (group.has_unknown_order) {
    stream.remarks.emplace_back("the counters do not tell in which order the accesses were");
    return;
  }
  if (group.followed == 0) {
    stream.findings.push_back({"sequential", group.trusted(0.6), "no thread made two accesses one after the other"});
    stream.order = "sequential";
    return;
  }
  const double contiguous = share_of(group.contiguous, group.followed);
  const double few = group.followed < 4 ? 0.85 : 1;
  if (contiguous >= 0.6) {
    stream.order = "sequential";
    stream.findings.push_back(
        {"sequential", group.trusted(few * std::min(contiguous, 0.98)),
         fmt::format("{} of the accesses begin where the thread's access before ended", percent(contiguous))});
    return;
  }
  // With a constant stride, or forwards by varying steps as in the rows of a block of a matrix.
  const double strided = share_of(group.contiguous + group.same_stride, group.followed - group.first_jumps);
  const double forwards = share_of(group.contiguous + group.forward, group.followed);
  if (strided >= nearly_all || forwards >= nearly_all) {
    stream.order = "strided";
    // Together they may fill the file: then what reaches a local disk is nearly in order.
    const bool is_full = group.sequences > group.members.size() && group.all([](const Group::Member& each) {
      return static_cast<double>(each.transfers->bytes()) >= nearly_all * static_cast<double>(each.transfers->end);
    });
    stream.findings.push_back(
        {is_full ? "sequential" : "random", group.trusted(few * (strided >= nearly_all ? 0.7 : 0.6)),
         fmt::format("{} of the accesses go forwards with gaps{}; {}", percent(1 - contiguous),
                     strided >= nearly_all ? " of one size" : "",
                     is_full ? "together the threads fill the file" : "they do not fill the file in order")});
    return;
  }
  if (contiguous <= 0.4) {
    stream.order = "random";
    stream.findings.push_back({"random", group.trusted(few * std::min(1 - contiguous, 0.98)),
                               fmt::format("{} of the accesses do not begin where the thread's access before ended",
                                           percent(1 - contiguous))});
    return;
  }
  stream.remarks.push_back(
      fmt::format("{} of the accesses are contiguous: neither sequential nor random", percent(contiguous)));
}

/// Whether each operation waits for the storage.
void find_synchrony(const Group& group, InferredStream& stream) {
  const double waited = static_cast<double>(group.waited) / static_cast<double>(group.count());
  if (waited >= 0.5) {
    stream.findings.push_back(
        {"sync", group.trusted(waited * repeatedly),
         fmt::format("{} of the accesses are through descriptors with O_SYNC, O_DSYNC or O_DIRECT", percent(waited))});
    return;
  }
  // Counters do not tell whether a descriptor has O_SYNC: many calls of fsync(2) are a proof, few are none.
  const bool may_wait_unseen =
      group.is_counted && static_cast<double>(group.syncs) < 0.2 * static_cast<double>(group.writes);
  if (may_wait_unseen || (!group.is_counted && !group.has_all_calls) || (group.is_counted && group.writes == 0)) return;
  if (group.writes == 0) {
    stream.findings.push_back({"nosync", group.trusted(repeatedly), "reads go through the page cache"});
    return;
  }
  const double syncs = static_cast<double>(group.syncs) / static_cast<double>(group.writes);
  // With a sync for every few writes the time is still that of the syncs.
  const std::string why = fmt::format("{} for {}", count_of(group.syncs, "fsync"), count_of(group.writes, "write"));
  if (syncs >= 0.2)
    stream.findings.push_back({"sync", group.trusted(syncs >= nearly_all ? 0.95 : syncs >= 0.5 ? 0.8 : 0.65), why});
  else
    stream.findings.push_back({"nosync", group.trusted(syncs <= 0.02 && waited <= 0.1 ? 0.95 : 0.75),
                               group.syncs == 0 ? "no write waits for the storage" : "only " + why});
}

void find_size_per_io(const Group& group, InferredStream& stream) {
  const SizeCounts& sizes = group.sizes;
  stream.least_size = sizes.quantile(0.1), stream.greatest_size = sizes.quantile(0.9);
  const auto around = [](std::uint64_t size) { return std::pair(size / 2, size > UINT64_MAX / 2 ? size : 2 * size); };
  // The typical size is that of most accesses. Where these are of no one size, it is that of most bytes.
  std::uint64_t typical = sizes.most_frequent();
  if (sizes.share(typical, typical) < 0.5) typical = sizes.quantile(0.5);
  auto [least, most] = around(typical);
  double share = sizes.share(least, most);
  std::string_view of = "accesses";
  double confidence = share;
  if (share < 0.5) {
    typical = sizes.quantile_of_bytes(0.5);
    std::tie(least, most) = around(typical);
    share = sizes.share_of_bytes(least, most);
    confidence = 0.7 * share;
    of = "bytes";
  }
  const double few = group.count() == 1 ? 0.75 : group.count() < 4 ? 0.85 : 1;
  if (group.has_unknown_sizes) {
    stream.findings.push_back({fmt::format("size-per-IO({})", bytes_text(typical)),
                               group.trusted(few * std::min(confidence, 0.55)),
                               "the mean: the counters of stdio have no sizes"});
    return;
  }
  std::string why = fmt::format("{} of the {} have {} to {}", percent(share), of, bytes_text(least), bytes_text(most));
  if (stream.least_size != stream.greatest_size)
    why += fmt::format("; from {} (10th percentile) to {} (90th)", bytes_text(stream.least_size),
                       bytes_text(stream.greatest_size));
  else
    why = fmt::format("{} have this size", percent(sizes.share(typical, typical)));
  stream.findings.push_back({fmt::format("size-per-IO({})", bytes_text(typical)),
                             group.trusted(few * std::min(confidence, repeatedly)), std::move(why)});
}

std::uint64_t size_of(const Group::Member& each) {
  return static_cast<std::uint64_t>(std::max(each.transfers->end, each.facts->allocated_end));
}

void find_total_bytes(const Group& group, InferredStream& stream) {
  std::uint64_t least = UINT64_MAX, most = 0;
  for (const Group::Member& each : group.members)
    least = std::min(least, size_of(each)), most = std::max(most, size_of(each));
  if (most == 0) return;  // no access has an offset
  double confidence = group.members.size() > 1 && least == most ? repeatedly : once;
  std::string why = group.writes > 0 ? "the end of the furthest access" : "the end of the furthest read";
  const bool is_known = group.all([](const Group::Member& each) {
    const StreamFacts& facts = *each.facts;
    return facts.has_read_end || (each.transfers->writes > 0 && (!facts.was_there || facts.is_emptied));
  });
  if (!is_known) {
    confidence = 0.7;
    why += "; the file may be larger";
  }
  if (least != most) {
    why = fmt::format("the largest of {} files, of {} to {}", group.members.size(),
                      about_bytes(static_cast<double>(least)), about_bytes(static_cast<double>(most)));
    confidence = std::min(confidence, 0.85);
  }
  stream.findings.push_back(
      {fmt::format("totalsize({})", bytes_text(most)), group.trusted(confidence), std::move(why)});
}

void find_reads(const Group& group, InferredStream& stream) {
  if (group.reads == 0) return;
  const double share = static_cast<double>(group.reads) / static_cast<double>(group.count());
  // 100 % would say that the data exist before the job.
  const double percents = std::clamp(std::round(100 * share), 1.0, group.writes > 0 ? 99.0 : 100.0);
  stream.findings.push_back(
      {group.writes == 0 ? "read-share(1)" : fmt::format("read-share({:g}%)", percents),
       group.trusted(group.writes == 0 ? 0.95 : once),
       group.writes == 0 ? "only read"
                         : fmt::format("{}, {}", count_of(group.reads, "read"), count_of(group.writes, "write"))});
}

void find_passes(const Group& group, InferredStream& stream) {
  double bytes = 0, size = 0;
  for (const Group::Member& each : group.members)
    bytes += static_cast<double>(each.transfers->bytes()), size += static_cast<double>(size_of(each));
  if (size == 0) return;
  const double passes = bytes / size;
  if (passes < 1.5) {
    if (passes < 0.75)
      stream.remarks.push_back(fmt::format("accesses transfer {} of the files' size", percent(passes)));
    return;
  }
  stream.findings.push_back({fmt::format("passes({:.0f})", std::min(std::round(passes), 1e6)),
                             group.trusted(std::abs(passes - std::round(passes)) < 0.1 ? once : 0.75),
                             fmt::format("{} transferred, {} of files", about_bytes(bytes), about_bytes(size))});
}

void find_think_time(const Group& group, InferredStream& stream) {
  std::int64_t ns = 0;
  for (const Group::Member& each : group.members) ns += each.transfers->think_ns;
  const double seconds = static_cast<double>(ns) / 1e9 / static_cast<double>(group.members.size());
  if (seconds < least_think_s) return;
  // Two digits, as the decimal number that people read: 1.7 has a shorter text than 17 times 0.1.
  const std::string digits = fmt::format("{:.1e}", seconds);
  double shown = seconds;
  std::from_chars(digits.data(), digits.data() + digits.size(), shown);
  stream.findings.push_back({fmt::format("think-time({})", seconds_text(shown)), group.trusted(0.75),
                             "pauses of at least 10 ms between accesses to the file"});
}

void find_sharing(const Group& group, InferredStream& stream) {
  std::map<const TracedRun*, std::set<std::uint64_t>> of_run;
  std::size_t most = 0, shared_by = 0;
  for (const Group::Member& each : group.members) {
    std::set<std::uint64_t> of_file = each.transfers->readers;
    of_file.insert(each.transfers->writers.begin(), each.transfers->writers.end());
    most = std::max(most, of_file.size());
    shared_by = std::max<std::size_t>(shared_by, each.transfers->shared_by);
    of_run[each.run].merge(of_file);
  }
  if (shared_by > 1) {
    stream.remarks.push_back(fmt::format(
        "opened by all processes of the job; which of them, at most {}, made accesses is not in the counters",
        shared_by));
    stream.processes = shared_by, most = std::max(most, shared_by);
  }
  for (const auto& [run, processes] : of_run) stream.processes = std::max(stream.processes, processes.size());
  stream.sharing = most > 1 ? "N-1" : stream.processes > 1 ? "N-N" : "one process";
}

/// Tells the size of the program's own calls where it differs from that of the calls that reach the file.
void remark_on_layers(const Group& group, InferredStream& stream) {
  const Group::Member& first = group.members.front();
  for (std::size_t layer = 0; layer < first.facts->layers.size(); ++layer) {
    const Transfers* const each = first.facts->layers[layer].get();
    if (each == nullptr || each == first.transfers ||
        each->sizes.most_frequent() == first.transfers->sizes.most_frequent())
      continue;
    stream.remarks.push_back(fmt::format("through {}, mostly {} at once; the words say what reaches the file system",
                                         trace::layer_names[layer], bytes_text(each->sizes.most_frequent())));
    return;
  }
}

/// `prepare` and pragmas redirect a file by a symbolic link in its place.
void remark_on_links(const Group& group, InferredStream& stream) {
  if (group.writes == 0) return;
  const auto is_any = [&](bool StreamFacts::*fact) {
    return std::ranges::any_of(group.members, [&](const Group::Member& each) { return each.facts->*fact; });
  };
  if (is_any(&StreamFacts::is_created_exclusively))
    stream.link_refusal = "created with O_EXCL, which fails where a link is";
  else if (is_any(&StreamFacts::is_refused_as_link))
    stream.link_refusal = "opened with O_NOFOLLOW, which fails at a link that the program has not resolved itself";
}

void set_alignment(const Group& group, InferredStream& stream) {
  if (!group.is_counted) {
    stream.aligned_share = share_of(group.aligned, group.count());
    return;
  }
  const std::uint64_t alignment = group.members.front().transfers->counted_alignment;
  if (alignment == 0 ||
      !group.all([&](const Group::Member& each) { return each.transfers->counted_alignment == alignment; }))
    return;
  stream.aligned_share = share_of(group.aligned, group.count());
  stream.remarks.push_back(fmt::format("the offsets of {} of the accesses are multiples of {}",
                                       percent(*stream.aligned_share), bytes_text(alignment)));
}

InferredStream inferred(const Group& group, std::size_t hosts_of_job, bool has_open_end) {
  InferredStream stream;
  stream.reads = group.reads, stream.writes = group.writes;
  stream.read_bytes = group.read_bytes, stream.written_bytes = group.written_bytes;
  set_alignment(group, stream);
  find_sharing(group, stream);
  find_lifetime(group, has_open_end, stream);
  find_visibility(group, hosts_of_job, stream);
  find_order(group, stream);
  find_synchrony(group, stream);
  find_size_per_io(group, stream);
  find_total_bytes(group, stream);
  find_reads(group, stream);
  find_passes(group, stream);
  find_think_time(group, stream);
  remark_on_layers(group, stream);
  remark_on_links(group, stream);
  if (group.is_mapped) stream.remarks.emplace_back("mapped: loads and stores are not in the trace");
  if (!group.is_complete) stream.remarks.emplace_back("the trace does not have every call");
  if (group.is_killed) stream.remarks.emplace_back("the run was killed");
  if (const std::string& to = group.members.front().facts->renamed_to; !to.empty())
    stream.remarks.push_back(fmt::format("renamed to '{}' after it was written", printable(to)));
  return stream;
}

std::string_view name_of_word(std::string_view word) { return word.substr(0, word.find('(')); }

/// Lowers the confidence of words that are not those of each run, and tells how the runs differ. Words of which there
/// is one of two, such as temp and persist, are the same word here.
void compare_runs(const Group& group, std::size_t hosts_of_job, bool has_open_end, InferredStream& stream) {
  constexpr double if_runs_differ = 0.75;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> pairs{
      {{"temp", "persist"}, {"sequential", "random"}, {"sync", "nosync"}}};
  const auto subject_of = [&](std::string_view word) {
    const std::string_view name = name_of_word(word);
    for (const auto& [one, other] : pairs)
      if (name == other) return one;
    return name;
  };
  std::map<const TracedRun*, Group> of_run;
  for (const Group::Member& each : group.members) of_run[each.run].add(*each.run, *each.facts);
  if (of_run.size() < 2) return;
  std::map<const TracedRun*, InferredStream> alone;
  for (const auto& [run, members] : of_run) alone.emplace(run, inferred(members, hosts_of_job, has_open_end));
  for (Finding& finding : stream.findings) {
    std::vector<std::string> said;
    bool is_same = true;
    for (const auto& [run, found] : alone) {
      const auto same = std::ranges::find_if(
          found.findings, [&](const Finding& each) { return subject_of(each.word) == subject_of(finding.word); });
      const std::string word = same == found.findings.end() ? "nothing" : same->word;
      is_same = is_same && word == finding.word;
      said.push_back(fmt::format("{} in {}", word, printable(run->name)));
    }
    if (is_same) {
      finding.why += fmt::format("; the same in {} runs", alone.size());
      continue;
    }
    std::ranges::sort(said);
    finding.why += fmt::format("; runs differ: {}", fmt::join(said, ", "));
    finding.confidence *= if_runs_differ;
  }
}

}  // namespace

std::string InferredStream::signature_text(double least_confidence) const {
  std::string text;
  for (const Finding& each : findings)
    if (each.confidence >= least_confidence) text += (text.empty() ? "" : " ") + each.word;
  return text;
}

std::vector<InferredStream> infer(std::span<const TracedRun> runs) {
  std::vector<PathUse> uses;
  std::vector<std::pair<const TracedRun*, const StreamFacts*>> sources;
  std::set<std::string> hosts;
  std::map<std::string_view, int> kinds;  // a file that one run writes and another reads is one stream
  for (const TracedRun& run : runs)
    for (const StreamFacts& facts : run.facts) {
      const Transfers* const transfers = facts.transfers();
      if (transfers == nullptr) continue;
      kinds[facts.path] |= transfers->writes > 0 ? 1 : 0;
      uses.push_back({.path = facts.path, .may_be_random = facts.is_created_exclusively, .run = &run.numbers});
      sources.emplace_back(&run, &facts);
      hosts.insert(transfers->hosts.begin(), transfers->hosts.end());
    }
  for (PathUse& use : uses) use.kind = kinds[use.path];
  std::vector<InferredStream> streams;
  for (PathFamily& family : families_of(uses)) {
    Group group;
    std::set<std::string> paths;
    for (const std::size_t number : family.members) {
      group.add(*sources[number].first, *sources[number].second);
      paths.insert(uses[number].path);
    }
    InferredStream& made = streams.emplace_back(inferred(group, hosts.size(), family.has_open_end));
    compare_runs(group, hosts.size(), family.has_open_end, made);
    made.paths.assign(paths.begin(), paths.end());
    made.glob = std::move(family.glob);
    made.glob_why = std::move(family.why);
  }
  return streams;
}

}  // namespace iosig::observe
