// `workloads run`: performs a workload's accesses on files, and says how long that took.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "options.h"
#include "worker_group.h"

namespace iosig::workloads {
namespace {

using nlohmann::ordered_json;

struct RunOptions {
  std::string target, through = "posix";
  bool write = false, read = false, verify = false, force = false, sync = false, json = false;
  std::uint32_t threads = 0;
};

/// Takes the files away again unless the run comes to its end.
class Unfinished {
 public:
  explicit Unfinished(WorkerGroup& workers) : workers_(&workers) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (workers_ != nullptr) workers_->remove_made();
  }
  void finish() { workers_ = nullptr; }

 private:
  WorkerGroup* workers_;
};

double rate_of(const Outcome& outcome) {
  return outcome.elapsed_s > 0 ? static_cast<double>(outcome.tally.bytes) / outcome.elapsed_s : 0;
}

ordered_json json_of(Phase phase, const Outcome& outcome) {
  return {
      {"phase", name_of(phase)},        {"operations", outcome.tally.operations}, {"bytes", outcome.tally.bytes},
      {"elapsed_s", outcome.elapsed_s}, {"in_calls_s", outcome.tally.in_calls_s}, {"bytes_per_s", rate_of(outcome)}};
}

/// `infeasible` when the file does not end where the workload does.
Result<void> check_size(const Job& job, std::uint32_t rank) {
  const auto size = size_of(job.path(rank));
  if (!size) return pass_on(size.error());
  if (*size == job.plan.file_bytes || job.plan.is_repeating) return {};  // the last slot may never have been drawn
  return fail(ErrorKind::infeasible, "'{}' has {} bytes, and the workload makes {}", printable(job.path(rank)), *size,
              job.plan.file_bytes);
}

int run_job(const Told& told, const RunOptions& options, WorkerGroup& workers, const cli::Console& console) {
  const auto say_failed = [&](const Error& error) {
    return workers.is_speaker() ? failed(error) : cli::exit_status(error.kind);
  };
  if (workers.ranks() > 0 && told.ranks.value_or(workers.ranks()) != workers.ranks())
    return say_failed({ErrorKind::usage, fmt::format("--ranks {}, but MPI started {}", *told.ranks, workers.ranks())});
  if (options.through == "mpiio" && !is_mpi_program)
    return say_failed({ErrorKind::usage, "--through mpiio needs MPI's ranks: mpirun -n 16 workloads_mpi run ..."});
  const auto plan = workers.ranks() > 0 ? plan_of(told, workers.ranks()) : plan_of(told);
  if (!plan) return say_failed(plan.error());
  const Job job{*plan, options.target, options.force, options.sync, options.through == "mpiio"};
  std::vector<Phase> phases;
  if (options.write || (!options.read && !options.verify)) phases.push_back(Phase::write);
  if (options.read) phases.push_back(Phase::read);
  if (options.verify) phases.push_back(Phase::verify);

  if (interruption() != 0) return 128 + interruption();  // from here on ^C is noticed
  Unfinished unfinished(workers);
  if (phases.front() == Phase::write)
    if (const auto made = workers.create(job); !made) return say_failed(made.error());
  ordered_json done = ordered_json::array();
  cli::Table table({"phase", "operations", "bytes", "elapsed", "in calls", "rate"});
  for (const Phase phase : phases) {
    const auto outcome = workers.run(job, phase);
    if (!outcome) {
      const int status = say_failed(outcome.error());
      return interruption() != 0 ? 128 + interruption() : status;
    }
    if (phase == Phase::write) unfinished.finish();  // what is wrong from here on is worth looking at
    done.push_back(json_of(phase, *outcome));
    table.add({std::string(name_of(phase)), std::to_string(outcome->tally.operations),
               std::to_string(outcome->tally.bytes), about_seconds(outcome->elapsed_s),
               about_seconds(outcome->tally.in_calls_s), about_rate(rate_of(*outcome))});
  }
  if (!workers.is_speaker()) return cli::yes;
  if (options.verify)
    for (std::uint32_t rank = 0; rank < (job.plan.is_one_file ? 1 : job.plan.ranks); ++rank)
      if (const auto fits = check_size(job, rank); !fits) return failed(fits.error());
  if (console.json)
    console.say_json("iosig.workload_run/1", {{"workload", told.name},
                                              {"target", job.target},
                                              {"ranks", job.plan.ranks},
                                              {"through", options.through},
                                              {"file_bytes", job.plan.file_bytes},
                                              {"phases", done}});
  else
    console.say(table.text());
  return cli::yes;
}

}  // namespace

void add_run(cli::Verb app, cli::Action& action) {
  const cli::Verb verb = app.add_verb("run", "Perform the accesses on a file, or a file for each rank");
  const auto told = std::make_shared<Told>();
  const auto options = std::make_shared<RunOptions>();
  add_workload_options(verb, told);
  verb.add_option("TARGET", options->target, "The file; n-n's are TARGET.0, TARGET.1, ...").required();
  verb.add_flag("--write", options->write, "Make the file; the only phase unless others are given");
  verb.add_flag("--read", options->read, "Read it, each rank what it wrote");
  verb.add_flag("--verify", options->verify, "Compare every byte that was written; status 1 where one differs");
  verb.add_flag("--force", options->force, "Replace a file that exists");
  verb.add_flag("--sync", options->sync, "The write phase ends with fsync");
  verb.add_option("--through", options->through, "mpiio only under mpirun; posix unless given")
      .check(cli::one_of({"posix", "mpiio"}));
  verb.add_option("--threads", options->threads, "Ranks at a time; 64 unless given").type_name("N");
  verb.footer(
      "Files that a failure or ^C leaves unfinished are removed.\n"
      "Example: workloads run milc-a /tmp/lattice --ranks 8 --write --verify");
  verb.when_chosen(action, "iosig.workload_run/1", [=](cli::Console& console) {
    const auto workers = make_worker_group(options->threads);
    if (!workers) return failed(workers.error());
    return run_job(*told, *options, **workers, console);
  });
}

}  // namespace iosig::workloads
