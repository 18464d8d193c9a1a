// `iosig reliability`: reports how long data of a given size last on a mount point. mttdl computes it, simulate runs a
// Monte Carlo simulation.

#include <chrono>
#include <cmath>
#include <concepts>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/cost/markov.h"
#include "iosig/cost/reliability.h"
#include "iosig/cost/simulate.h"
#include "iosig/cost/structure.h"
#include "iosig/decide/placement.h"
#include "storage_source.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

struct ReliabilityArguments {
  std::string storage, mount_point, size;
  std::string duration = seconds_text(assumed_duration_s);  // mttdl
  SimulationOptions simulation;
};

/// The subject of both verbs: data of a given size on a mount point.
struct Subject {
  Storage storage;
  std::string file;
  const Device* device = nullptr;  ///< of `storage`
  std::uint64_t size_bytes = 0;
  Result<Structure> structure;

  [[nodiscard]] ordered_json json(const ReliabilityArguments& options) const {
    return {
        {"storage", file}, {"mount_point", options.mount_point}, {"device", device->name}, {"size_bytes", size_bytes}};
  }
  [[nodiscard]] std::string heading() const {
    return fmt::format("{} on '{}'\n", bytes_text(size_bytes), printable(device->name));
  }
};

Result<Subject> subject_of(const ReliabilityArguments& options, const Console& console) {
  const auto size = parse_bytes(options.size);
  if (!size) return fail(ErrorKind::usage, "--size: {}", size.error().message);
  if (*size == 0) return fail(ErrorKind::usage, "--size: 0 bytes cannot be lost; expected at least 1B");
  auto source = load_storage(options.storage, console);
  if (!source) return pass_on(std::move(source.error()));
  const auto mount = described_mount_point(source->storage, options.mount_point);
  if (!mount) return pass_on(mount.error());
  const std::string name = (*mount)->device;
  Subject subject{std::move(source->storage), std::move(source->file), nullptr, *size, {}};
  subject.device = subject.storage.find_device(name);
  subject.structure = structure_of(subject.storage, *subject.device, *size);
  return subject;
}

template <class T>
ordered_json json_or_null(const Result<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

// ---- mttdl ----------------------------------------------------------------------------------------------------------

/// "3.2 % less", "the same", "0.01 times as long".
std::string difference_text(double value, double reference) {
  const double ratio = value / reference;
  if (ratio < 0.5 || ratio > 2) return fmt::format("{:.2g} times as long", ratio);
  if (std::abs(ratio - 1) < 5e-5) return "the same";
  return fmt::format("{:.2g} % {}", 100 * std::abs(ratio - 1), ratio > 1 ? "more" : "less");
}

int run_mttdl(const ReliabilityArguments& options, Console& console) {
  const auto duration_s = parse_seconds(options.duration);
  if (!duration_s) return console.fail({ErrorKind::usage, "--duration: " + duration_s.error().message});
  const auto subject = subject_of(options, console);
  if (!subject) return console.fail(subject.error());
  const Device& device = *subject->device;
  const auto uber = largest_uber(subject->storage, device);
  const auto mttdl = subject->structure.and_then(chain_mttdl_s);
  const auto eq2 = eq2_mttdl_s(subject->storage, device, subject->size_bytes);
  const bool is_no = !mttdl && mttdl.error().kind == ErrorKind::infeasible;
  if (!mttdl && !(is_no && console.json)) return console.fail(mttdl.error());
  if (console.json) {
    ordered_json document = subject->json(options);
    document["uber"] = json_or_null(uber);
    document["mttdl_s"] = json_or_null(mttdl);
    document["mttdl_eq2_s"] = mttdl ? json_or_null(eq2) : ordered_json(nullptr);
    document["duration_s"] = *duration_s;
    document["loss_probability"] = mttdl ? ordered_json(loss_probability(*mttdl, *duration_s)) : ordered_json(nullptr);
    if (!mttdl) document["reason"] = mttdl.error().message;
    console.say_json("iosig.mttdl/1", document);
    return mttdl ? yes : no;
  }
  std::string text = subject->heading();
  if (uber && *uber > 0)
    text += fmt::format("  UBER              {:.3g} uncorrectable bit errors per bit\n", *uber);
  else
    text += "  UBER              0: no bit error rate (ber) is described\n";
  text += fmt::format("  MTTDL             {}\n", about_seconds(*mttdl));
  text += eq2 ? fmt::format("  by Eq. 2          {} ({})\n", about_seconds(*eq2), difference_text(*eq2, *mttdl))
              : fmt::format("  by Eq. 2          - ({})\n", eq2.error().message);
  text += fmt::format("  loss within {:<5} probability {:.3g}", about_seconds(*duration_s),
                      loss_probability(*mttdl, *duration_s));
  console.say(text);
  return yes;
}

// ---- simulate -------------------------------------------------------------------------------------------------------

std::string interval_text(const Simulation& simulation) {
  if (!std::isfinite(simulation.mttdl_s)) return "no loss yet";
  const double half = (simulation.ci95_high_s - simulation.ci95_low_s) / 2 / simulation.mttdl_s;
  return fmt::format("{} +- {:.2g} %", about_seconds(simulation.mttdl_s), 100 * half);
}

int run_simulate(const ReliabilityArguments& options, Console& console) {
  const auto subject = subject_of(options, console);
  if (!subject) return console.fail(subject.error());
  if (!subject->structure) return console.fail(subject->structure.error());
  SimulationOptions simulated = options.simulation;
  const auto start = std::chrono::steady_clock::now();
  simulated.on_progress = [&](const Simulation& so_far) {
    if (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(500)) return;  // usually done by then
    console.progress(fmt::format("simulating: {} after {:.2g} million events", interval_text(so_far),
                                 static_cast<double>(so_far.events) / 1e6));
  };
  const auto found = simulate_mttdl(*subject->structure, simulated);
  console.end_progress();
  if (!found) return console.fail(found.error());
  if (!found->is_precise)
    console.note(
        fmt::format("given up after {} events: the interval is wider than --precision asks for", found->events));
  if (console.json) {
    ordered_json document = subject->json(options);
    document.update({{"mttdl_s", found->mttdl_s},
                     {"ci95_low_s", found->ci95_low_s},
                     {"ci95_high_s", found->ci95_high_s},
                     {"seed", simulated.seed},
                     {"losses", found->losses},
                     {"events", found->events},
                     {"weibull_shape", simulated.weibull_shape}});
    console.say_json("iosig.simulation/1", document);
    return yes;
  }
  console.say(
      fmt::format("{}  MTTDL             {}\n  95 % confidence   {} .. {}\n  played            {} losses, {} events, "
                  "seed {}",
                  subject->heading(), interval_text(*found), about_seconds(found->ci95_low_s),
                  about_seconds(found->ci95_high_s), found->losses, found->events, simulated.seed));
  return yes;
}

}  // namespace

void add_reliability(Verb app, Action& action) {
  const Verb reliability = app.add_verb("reliability", "How long data last on a mount point");
  reliability.require_verb();
  reliability.footer("Example: iosig reliability mttdl --mount-point /mnt/raid --size 1TB");
  const auto options = std::make_shared<ReliabilityArguments>();
  const auto add = [&](const char* name, const char* what) {
    const Verb verb = reliability.add_verb(name, what);
    add_storage_option(verb, options->storage);
    verb.add_option("--mount-point", options->mount_point, "where the data are").type_name("PATH").required();
    verb.add_option("--size", options->size, "how much data, e.g. 1TB").type_name("SIZE").required();
    return verb;
  };
  const Verb mttdl = add("mttdl", "Compute it: Markov chain of what the device is made of, beside Eq. 2");
  mttdl.add_option("--duration", options->duration, "time span of the probability of loss; 1y unless given")
      .type_name("TIME");
  mttdl.footer(
      "Exit status: 0 reliable, 1 not considered as reliable, 2 wrong usage, 3 bad input, 4 the system refused.\n"
      "Example: iosig reliability mttdl --mount-point /mnt/raid --size 1TB --duration 30d");
  mttdl.when_chosen(action, "iosig.mttdl/1", [options](Console& console) { return run_mttdl(*options, console); });

  const Verb simulate =
      add("simulate", "Play failures, rebuildings and unreadable sectors through, until it is known well");
  SimulationOptions& simulation = options->simulation;
  simulate.add_option("--precision", simulation.precision, "half of the 95 % interval, as a share; 0.05 unless given")
      .type_name("SHARE");
  simulate.add_option("--seed", simulation.seed, "the same seed gives the same result; 1 unless given")
      .check(count_between(0, std::numeric_limits<std::uint64_t>::max()));
  simulate
      .add_option("--weibull-shape", simulation.weibull_shape, "lives of devices: 1 exponential, above 1 wearing out")
      .type_name("SHAPE");
  simulate.add_option("--threads", simulation.threads, "number of threads; as many as processors unless given")
      .check(count_between(0, std::numeric_limits<unsigned>::max()));
  simulate.footer("Example: iosig reliability simulate --mount-point /mnt/raid --size 1TB --seed 7");
  simulate.when_chosen(action, "iosig.simulation/1",
                       [options](Console& console) { return run_simulate(*options, console); });
}

}  // namespace iosig::cli
