#include "iosig/observe/advise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "iosig/base/shell.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/cost/throughput.h"
#include "iosig/format/container_globs.h"
#include "iosig/observe/advice_subject.h"
#include "iosig/observe/many_files.h"

namespace iosig::observe {
namespace {

using trace::CallKind;
using trace::Layer;

constexpr std::uint64_t least_calls = 100;  ///< fewer are no habit
constexpr std::uint64_t least_syncs = 20;
constexpr std::uint64_t writes_per_open = 100;  ///< of a container, since an open takes as long as many writes
constexpr double least_s = 0.01;
constexpr double nearly_half = 0.5;
constexpr std::uint64_t buffer_bytes = MiB;      ///< what a program collects before it writes
constexpr std::uint64_t grouped_records = 16;    ///< that one sync makes durable
constexpr double least_imbalance = 1.5;          ///< slowest rank / mean
constexpr std::uint64_t max_listed = 1'000'000;  ///< by iosig query

// Options of iosig query that select calls. Calls that moved nothing count for no stream.
constexpr std::string_view select_reads = "--reads --min-bytes 1", select_writes = "--writes --min-bytes 1",
                           select_transfers = "--min-bytes 1";
/// Selects what StreamCosts counts as calls of a kind: not those of MPI-IO, which make such calls.
std::string select_kind(CallKind kind) {
  std::string names;
  for (std::uint16_t number = 1; number < trace::call_limit; ++number) {
    const auto call = static_cast<trace::Call>(number);
    if (call_kind_of(call) != kind || layer_of(call) == Layer::mpi_io) continue;
    names.append(names.empty() ? "--call " : ",").append(name_of(call));
  }
  return names;
}

double seconds_of(const Spent& spent) { return static_cast<double>(spent.ns) / 1e9; }

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }
double ratio(std::uint64_t part, std::uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

std::string percent_text(double share) { return fmt::format("{:.0f} %", 100 * share); }

class Adviser {
 public:
  Adviser(const TracedRun& run, const RunCosts& costs, const Surroundings& surroundings, double min_gain)
      : run_(run), costs_(costs), around_(surroundings), min_gain_(min_gain) {
    advised_.io_s = static_cast<double>(costs.io_ns) / 1e9;
    advised_.wall_s = static_cast<double>(costs.wall_ns) / 1e9;
  }

  RunAdvice advice() && {
    for (const Subject& each : subjects_of(run_, costs_)) {
      find_small(each, each.moved().writes, Topic::small_writes);
      find_small(each, each.moved().reads, Topic::small_reads);
      find_sharing(each);
      find_rereads(each);
      find_repeated(each);
      find_syncs(each);
      find_slow_place(each);
    }
    for (const bool written : {true, false}) find_many(written);
    find_imbalance();
    std::ranges::stable_sort(advised_.advice, std::greater{},
                             [](const Advice& each) { return each.gain.seconds.value_or(each.time_s); });
    return std::move(advised_);
  }

 private:
  // The commands.

  [[nodiscard]] std::string traces_text() const {
    std::string text;
    for (const std::string& each : around_.traces) text += " " + shell_word(each);
    return text;
  }

  /// The command that lists calls of a stream; `limit`: only those that moved fewer bytes.
  [[nodiscard]] Behind listed(const Subject& subject, Layer layer, std::string_view selection, std::uint64_t count,
                              std::uint64_t limit = 0) const {
    return listed(subject.stream.glob, trace::layer_names[static_cast<std::size_t>(layer)], selection, count, limit);
  }

  [[nodiscard]] Behind listed(const std::string& glob, std::string_view layer, std::string_view selection,
                              std::uint64_t count, std::uint64_t limit = 0) const {
    std::string command = fmt::format("iosig query latency{} --layer {} {} --files {}", traces_text(), layer, selection,
                                      shell_word(glob));
    if (limit > 0) command += fmt::format(" --max-bytes {}", limit - 1);
    command += fmt::format(" --stat list --top {}", std::clamp<std::uint64_t>(count, 1, max_listed));
    return {.count = count, .command = is_printable(command) ? std::move(command) : ""};
  }

  static bool is_printable(const std::string& text) { return printable(text) == text; }

  /// The run again, with the stream's files as containers.
  [[nodiscard]] std::string container_command(const Subject& subject) const {
    if (around_.command.empty() || subject.stream.glob.find(':') != std::string::npos) return {};
    std::string text = around_.launched ? fmt::format("mpirun -n {} ", *around_.launched) : "";
    text += fmt::format("iosig run --container {} --", shell_word(subject.stream.glob));
    for (const std::string& word : around_.command) text += " " + shell_word(word);
    return is_printable(text) ? text : "";
  }

  /// A container keeps each write where it is appended. It cannot be mapped shared, and `iosig run` makes one only of
  /// a new file.
  [[nodiscard]] static bool can_be_container(const Subject& subject) {
    return subject.is_new && !subject.costs.is_mapped && subject.layer == Layer::posix &&
           subject.costs.opens.calls * writes_per_open <= subject.moved().writes.all.calls;
  }
  static constexpr std::string_view container_caution =
      "the file must not exist when the program creates it; programs without 'iosig run' or 'iosig mount' read it "
      "after 'iosig container flatten'";

  // The gains.

  [[nodiscard]] Gain counted(const Spent& saved) const {
    const double seconds = seconds_of(saved);
    return {.seconds = seconds,
            .share = ratio(seconds, advised_.io_s),
            .why = fmt::format("the time of {} calls that are not needed", saved.calls)};
  }

  /// The gain if each of the accesses, `now`, were as `then` costs for its bytes.
  [[nodiscard]] Gain predicted(const Subject& subject, double time_s, const Workload& now, const Workload& then) const {
    const auto storing = around_.storing(subject.stream.paths.front());
    if (!storing) return {.why = around_.no_gain};
    const double now_s = predict(now, *storing->device, storing->block_bytes).operation_s;
    const double then_s = predict(then, *storing->device, storing->block_bytes).operation_s *
                          static_cast<double>(now.bytes_per_io) / static_cast<double>(then.bytes_per_io);
    return saved(time_s, now_s, then_s,
                 fmt::format("predicted for {}: {} for {} now, {} then", storing->device->name, about_seconds(now_s),
                             about_bytes(static_cast<double>(now.bytes_per_io)), about_seconds(then_s)));
  }

  [[nodiscard]] Gain saved(double time_s, double now_s, double then_s, std::string why) const {
    const double seconds = time_s * std::max(0.0, 1 - ratio(then_s, now_s));
    return {.seconds = seconds, .share = ratio(seconds, advised_.io_s), .why = std::move(why), .is_predicted = true};
  }

  void add(const Subject& subject, Topic topic, double time_s, std::string what, Behind behind, Help help, Gain gain) {
    add({.topic = topic,
         .glob = subject.stream.glob,
         .paths = subject.stream.paths,
         .what = std::move(what),
         .time_s = time_s,
         .time_share = ratio(time_s, advised_.io_s),
         .behind = std::move(behind),
         .help = std::move(help),
         .gain = std::move(gain)});
  }

  void add(Advice&& advice) {
    const double seconds = advice.gain.seconds.value_or(advice.time_s);
    const double share = advice.gain.seconds ? advice.gain.share : advice.time_share;
    if (seconds < least_s || share < min_gain_)
      ++advised_.left_out;
    else
      advised_.advice.push_back(std::move(advice));
  }

  // The topics.

  void find_small(const Subject& subject, const TransferCosts& costs, Topic topic) {
    const bool writes = topic == Topic::small_writes, is_random = subject.is_random();
    const Spent& small = is_random ? costs.small : costs.below_block;
    if (small.calls < least_calls || ratio(small.calls, costs.all.calls) < nearly_half) return;
    if (is_random && !writes) return;  // where a file is read at random, the place counts
    if (writes && is_synced(subject)) return;
    const bool is_contained = is_random && can_be_container(subject);
    const std::uint64_t size = std::max<std::uint64_t>(1, small.bytes / small.calls);
    // A buffer collects what one process moves while it has the file open.
    const std::uint64_t at_once = small.bytes / std::max<std::uint64_t>(1, subject.uses(writes));
    if (!is_random && at_once < 2 * size) return;
    const Workload now{.bytes_per_io = size, .random = is_random, .read_share = writes ? 0.0 : 1.0, .sync = false};
    Workload then = now;
    then.random = false;
    if (!is_random) then.bytes_per_io = std::clamp(at_once, size, std::max(size, buffer_bytes));
    Help help;
    if (is_contained)
      help = {.text = "make the file a container, which appends each write to a log of its process",
              .command = container_command(subject),
              .caution = std::string(container_caution)};
    else if (is_random)
      help = {.text = "write larger pieces, in the order of the file"};
    else if (writes)
      help = {.text = "collect the bytes in a buffer of 1 MB and write that, as stdio does after setvbuf",
              .caution =
                  "flush before the data are needed elsewhere: what is in the buffer is lost if the program crashes"};
    else
      help = {.text = "read 1 MB at once and take the pieces from there, as stdio does after setvbuf"};
    const double time_s = seconds_of(small);
    const std::uint64_t unaligned = is_random ? costs.small_unaligned : costs.below_block_unaligned;
    add(subject, topic, time_s,
        fmt::format("{} {} of {} on average, {} not aligned to blocks, {}", small.calls, writes ? "writes" : "reads",
                    about_bytes(static_cast<double>(size)), percent_text(ratio(unaligned, small.calls)),
                    subject.stream.order.empty() ? "in mixed order" : subject.stream.order),
        listed(subject, subject.layer, writes ? select_writes : select_reads, small.calls,
               static_cast<std::uint64_t>(is_random ? small_bytes : io_block_bytes)),
        std::move(help), predicted(subject, time_s, now, then));
  }

  /// Whether every few writes wait for the storage: then the program must not keep data back, and syncs are the topic.
  static bool is_synced(const Subject& subject) {
    return subject.has_word("sync") ||
           5 * subject.costs.syncs.calls >= std::max<std::uint64_t>(1, subject.moved().writes.all.calls);
  }

  void find_sharing(const Subject& subject) {
    const Spent& writes = subject.moved().writes.all;
    if (!subject.has_several_writers || subject.costs.collective_mpi_writes > 0 || writes.calls < least_calls) return;
    const bool uses_mpi = subject.costs.independent_mpi_writes > 0, is_contained = can_be_container(subject);
    if (!uses_mpi && !is_contained) return;
    const bool sync = subject.has_word("sync");
    const std::uint64_t size = std::max<std::uint64_t>(1, writes.bytes / writes.calls);
    const Workload now{.bytes_per_io = size, .random = subject.is_random(), .sync = sync};
    Workload then = now;
    then.random = false;
    if (!is_contained) then.bytes_per_io = std::max(size, buffer_bytes);
    Help help;
    if (is_contained)
      help = {.text = "make the file a container: each process appends to a log of its own",
              .command = container_command(subject),
              .caution = std::string(container_caution)};
    if (uses_mpi)
      help.text += fmt::format("{}collective calls (MPI_File_write_at_all) merge the pieces of the ranks",
                               is_contained ? "; or change the program: " : "");
    const double time_s = seconds_of(writes);
    add(subject, Topic::shared_file, time_s,
        fmt::format("{} processes make {} writes of {} on average to one file, {}, without collective calls",
                    subject.stream.processes, writes.calls, about_bytes(static_cast<double>(size)),
                    subject.stream.order.empty() ? "in mixed order" : subject.stream.order),
        listed(subject, subject.layer, select_writes, writes.calls), std::move(help),
        predicted(subject, time_s, now, then));
  }

  void find_rereads(const Subject& subject) {
    const Spent& reads = subject.moved().reads.all;
    const auto passes = std::ranges::find_if(subject.stream.findings,
                                             [](const Finding& each) { return each.word.starts_with("passes("); });
    if (subject.stream.writes > 0 || subject.stream.order != "random" || reads.calls < least_calls ||
        passes == subject.stream.findings.end() || subject.stream.paths.size() > 1)
      return;
    const std::string& path = subject.stream.paths.front();
    const std::string signature = subject.stream.signature_text(0.6) + " volatile";  // a copy may be lost
    std::string command = fmt::format("d=$(iosig choose --make-folder{} --home {} {}) && cp {} \"$d\"/",
                                      storage_option(), shell_word(path), shell_word(signature), shell_word(path));
    add(subject, Topic::random_rereads, seconds_of(reads),
        fmt::format("{} reads of {} on average in random order; {}", reads.calls,
                    about_bytes(static_cast<double>(reads.bytes) / static_cast<double>(reads.calls)), passes->why),
        listed(subject, subject.layer, select_reads, reads.calls),
        {.text = "copy the file to the fastest storage before the run, and let the program read it there",
         .command = is_printable(command) ? std::move(command) : "",
         .caution = "remove the copy after the run"},
        gain_elsewhere(subject, signature, seconds_of(reads)).first);
  }

  /// The gain of the best mount point, and its path. No path: unknown, or the stream is best at home.
  std::pair<Gain, std::string> gain_elsewhere(const Subject& subject, const std::string& signature,
                                              double time_s) const {
    const auto choice = around_.choose(subject.stream.paths.front(), signature);
    if (!choice) return {{.why = around_.no_gain}, ""};
    const auto home = std::ranges::find_if(choice->candidates, [](const Candidate& each) { return each.is_home; });
    const auto chosen = std::ranges::find_if(choice->candidates,
                                             [&](const Candidate& each) { return choice->chosen == each.mount_point; });
    if (home == choice->candidates.end()) return {{.why = "the path is on no mount point of the description"}, ""};
    if (chosen == choice->candidates.end() || chosen->is_home)
      return {{.seconds = 0, .why = "it is best where it is", .is_predicted = true}, ""};
    return {saved(time_s, home->job.total_s(), chosen->job.total_s(),
                  fmt::format("predicted for {}: {} for all, {} here", chosen->mount_point,
                              about_seconds(chosen->job.total_s()), about_seconds(home->job.total_s()))),
            chosen->mount_point};
  }

  void find_repeated(const Subject& subject) {
    const StreamCosts& costs = subject.costs;
    // Where others write the file, an open may be what shows their data (close-to-open consistency).
    if (costs.repeated_opens.calls >= least_calls && !subject.has_several_writers && is_one_host(subject))
      add(subject, Topic::repeated_opens, seconds_of(costs.repeated_opens),
          fmt::format("{} of {} opens are of a file that the process has opened before", costs.repeated_opens.calls,
                      costs.opens.calls),
          listed(subject.stream.glob, "all", select_kind(CallKind::open), costs.opens.calls),
          {.text = "keep the file open in the program"}, counted(costs.repeated_opens));
    if (costs.repeated_stats.calls >= least_calls)
      add(subject, Topic::repeated_stats, seconds_of(costs.repeated_stats),
          fmt::format("{} of {} questions about the file's attributes were answered before, and no traced call has "
                      "changed the file since",
                      costs.repeated_stats.calls, costs.stats.calls),
          listed(subject, Layer::posix, select_kind(CallKind::look_up), costs.stats.calls),
          {.text = "keep the answer in the program",
           .caution = "not if programs outside the trace change the file meanwhile"},
          counted(costs.repeated_stats));
  }

  static bool is_one_host(const Subject& subject) { return !subject.has_word("global"); }

  void find_syncs(const Subject& subject) {
    const StreamCosts& costs = subject.costs;
    const Spent& idle = costs.idle_syncs;
    if (idle.calls >= least_syncs && !costs.is_mapped && !costs_.has_unseen_writes && run_.is_complete &&
        run_.has_all_calls)
      add(subject, Topic::idle_syncs, seconds_of(idle),
          fmt::format("{} of {} syncs found nothing to do: no traced call had changed the file since the one before",
                      idle.calls, costs.syncs.calls),
          listed(subject, Layer::posix, select_kind(CallKind::sync), costs.syncs.calls),
          {.text = "sync only after a change"}, counted(idle));
    if (is_synced(subject)) find_sync_storm(subject);
  }

  /// A sync for every few writes; or none, as each write is one.
  void find_sync_storm(const Subject& subject) {
    const StreamCosts& costs = subject.costs;
    const Spent& writes = subject.moved().writes.all;
    const bool by_flag = subject.has_word("sync") && 5 * costs.syncs.calls < writes.calls;
    const std::uint64_t needed = by_flag ? writes.calls : costs.syncs.calls - costs.idle_syncs.calls;
    if (needed < least_syncs || writes.calls == 0) return;
    const std::uint64_t size = std::max<std::uint64_t>(1, writes.bytes / needed);
    if (size >= buffer_bytes) return;
    const double time_s = by_flag ? seconds_of(writes) : seconds_of(costs.syncs) - seconds_of(costs.idle_syncs);
    const Workload now{.bytes_per_io = size, .random = subject.is_random(), .sync = true};
    Workload then = now;
    then.bytes_per_io = size * grouped_records;
    const auto [help, gain] = help_for_syncs(subject, time_s, predicted(subject, time_s, now, then));
    const std::string mean = about_bytes(static_cast<double>(size));
    add(subject, Topic::sync_storm, time_s,
        by_flag ? fmt::format("{} writes of {} on average, each of which waits for the storage (O_SYNC, O_DSYNC, "
                              "O_DIRECT)",
                              writes.calls, mean)
                : fmt::format("{} syncs for {} writes: one after {} on average{}", needed, writes.calls, mean,
                              costs.idle_syncs.calls == 0
                                  ? ""
                                  : fmt::format("; without {} that found nothing to do", costs.idle_syncs.calls)),
        by_flag ? listed(subject, subject.layer, select_writes, writes.calls)
                : listed(subject, Layer::posix, select_kind(CallKind::sync), costs.syncs.calls),
        help, gain);
  }

  /// A faster place that keeps the data as well needs no change of the program. `grouped`: the gain of changing it.
  [[nodiscard]] std::pair<Help, Gain> help_for_syncs(const Subject& subject, double time_s, Gain grouped) const {
    Help in_groups{
        .text = fmt::format("commit in groups: write up to {} records, sync once, and only then report them as stored",
                            grouped_records),
        .caution =
            "what was not synced is lost if the machine fails: report nothing as stored before its sync; a "
            "journal is still synced before the data that it protects"};
    auto [elsewhere, place] = placed(subject, time_s);
    if (place.empty()) return {std::move(in_groups), std::move(grouped)};
    Help help = prepared(subject, place);
    help.text += fmt::format("; or in the program, to gain about {}: {}", about_seconds(grouped.seconds.value_or(0)),
                             in_groups.text);
    return {std::move(help), std::move(elsewhere)};
  }

  /// Returns the signature that infer() found without `temp`, which only the user may say: finalize deletes such data.
  static std::string kept_signature(const Subject& subject) {
    InferredStream kept = subject.stream;
    std::erase_if(kept.findings, [](const Finding& each) { return each.word == "temp" || each.word == "local"; });
    std::string text = kept.signature_text(0.6);
    if (text.find("persist") == std::string::npos) text = text.empty() ? "persist" : "persist " + text;
    return text;
  }

  /// Where a file that the run makes would be written faster.
  std::pair<Gain, std::string> placed(const Subject& subject, double time_s) const {
    if (!subject.is_new || !subject.follows_link || subject.stream.writes == 0 || subject.stream.paths.size() > 1 ||
        subject.costs.is_mapped)
      return {};
    return gain_elsewhere(subject, kept_signature(subject), time_s);
  }

  [[nodiscard]] std::string storage_option() const {
    return around_.storage.empty() ? "" : " --storage " + shell_word(around_.storage);
  }

  [[nodiscard]] Help prepared(const Subject& subject, const std::string& mount_point) const {
    std::string command = fmt::format("iosig prepare{} {} {}", storage_option(),
                                      shell_word(subject.stream.paths.front()), shell_word(kept_signature(subject)));
    return {
        .text = fmt::format("write the file on {}; 'iosig finalize' brings it home after the run", mount_point),
        .command = is_printable(command) ? std::move(command) : "",
        .caution = subject.may_refuse_link
                       ? "the file must not exist before the run; the program opens it with O_NOFOLLOW, so try first "
                         "whether it follows the link"
                       : "the file must not exist before the run"};
  }

  void find_slow_place(const Subject& subject) {
    const LayerCosts& moved = subject.moved();
    if (is_synced(subject)) return;
    const std::uint64_t calls = moved.reads.all.calls + moved.writes.all.calls;
    const double time_s = seconds_of(moved.reads.all) + seconds_of(moved.writes.all);
    auto [gain, place] = placed(subject, time_s);
    if (place.empty()) return;
    add(subject, Topic::slow_place, time_s,
        fmt::format("{} accesses, {} written, {} read", calls, about_bytes(static_cast<double>(moved.writes.all.bytes)),
                    about_bytes(static_cast<double>(moved.reads.all.bytes))),
        listed(subject, subject.layer, select_transfers, calls), prepared(subject, place), std::move(gain));
  }

  void find_many(bool written) {
    const auto many = find_many_files(run_.facts, costs_.streams, written);
    if (!many) return;
    const std::string glob = escaped_glob(many->directory == "/" ? "" : many->directory) + "/*";
    const Spent& opens = many->opens;
    add({.topic = Topic::many_files,
         .glob = glob,
         .paths = many->paths,
         .what = fmt::format("{} files of {} on average are {}; their opens take {}, moving their bytes {}",
                             many->paths.size(),
                             about_bytes(static_cast<double>(many->bytes) / static_cast<double>(many->paths.size())),
                             written ? "written" : "read", about_seconds(seconds_of(opens)),
                             about_seconds(seconds_of(many->transfers))),
         .time_s = seconds_of(opens),
         .time_share = ratio(seconds_of(opens), advised_.io_s),
         .behind = listed(glob, "all", select_kind(CallKind::open), opens.calls),
         .help = {.text = written
                              ? "write one file that has all of them, as a tar archive, an HDF5 file or a database"
                              : "pack them into one file, as a tar archive, an HDF5 file or a database, and read that",
                  .caution = "not if other programs need the separate files"},
         .gain =
             counted({.calls = opens.calls - 1, .ns = opens.ns - opens.ns / static_cast<std::int64_t>(opens.calls)})});
  }

  void find_imbalance() {
    if (costs_.ranks.size() < 2) return;
    double sum_s = 0, bytes = 0;
    for (const auto& [rank, each] : costs_.ranks)
      sum_s += seconds_of(each.spent), bytes += static_cast<double>(each.read_bytes + each.written_bytes);
    const auto slowest =
        std::ranges::max_element(costs_.ranks, {}, [](const auto& each) { return each.second.spent.ns; });
    const double mean_s = sum_s / static_cast<double>(costs_.ranks.size());
    const double most_s = seconds_of(slowest->second.spent);
    if (most_s < least_imbalance * mean_s) return;
    const std::uint64_t moved = slowest->second.read_bytes + slowest->second.written_bytes;
    const double share = ratio(static_cast<double>(moved), bytes);
    const bool has_most_bytes = share * static_cast<double>(costs_.ranks.size()) >= least_imbalance;
    const bool moves_for_others = ratio(slowest->second.collective_bytes, moved) >= nearly_half;
    add({.topic = Topic::imbalance,
         .what = fmt::format(
             "rank {} spends {} in reads and writes, the {} ranks {} on average; it moves {} of the bytes",
             slowest->first, about_seconds(most_s), costs_.ranks.size(), about_seconds(mean_s), percent_text(share)),
         .time_s = most_s,
         .time_share = ratio(most_s, advised_.io_s),
         .behind = {.count = slowest->second.spent.calls,
                    .command = fmt::format("iosig query latency{} --layer posix {} --rank {} --stat list --top {}",
                                           traces_text(), select_transfers, slowest->first,
                                           std::clamp<std::uint64_t>(slowest->second.spent.calls, 1, max_listed))},
         .help = {.text = has_most_bytes && moves_for_others
                              ? "collective calls have few ranks move the bytes of all; more do by the hint cb_nodes, "
                                "or with Open MPI by --mca io_ompio_num_aggregators N"
                          : has_most_bytes
                              ? "let the ranks share the bytes evenly, or all take part in collective calls"
                              : "it moves no more bytes than others: look at the node and the files of this rank"},
         .gain = {.seconds = most_s - mean_s,
                  .share = ratio(most_s - mean_s, most_s),
                  .why = "the time of the slowest rank less the mean: the job waits for the slowest"}});
  }

  const TracedRun& run_;
  const RunCosts& costs_;
  const Surroundings& around_;
  double min_gain_;
  RunAdvice advised_;
};

}  // namespace

RunAdvice advise(const TracedRun& run, const RunCosts& costs, const Surroundings& surroundings, double min_gain) {
  return Adviser(run, costs, surroundings, min_gain).advice();
}

}  // namespace iosig::observe
