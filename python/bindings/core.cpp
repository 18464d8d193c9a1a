// iosig._core: the native core for Python. What the core decides is called here, never derived again.
// pattern*.cpp have the patterns, trace*.cpp the traces.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "collective.h"
#include "directives.h"
#include "iosig/config/storage_file.h"
#include "iosig/cost/markov.h"
#include "iosig/cost/reliability.h"
#include "iosig/cost/simulate.h"
#include "iosig/cost/throughput.h"
#include "iosig/decide/placement.h"
#include "iosig/format/choice_json.h"
#include "iosig/format/signature_text.h"
#include "pattern.h"
#include "raise.h"
#include "simulate.h"
#include "striping.h"
#include "trace.h"
#include "trace_summary.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using namespace iosig;
using python::raise_python, python::value_or_raise;

Signature signature_of(const std::string& text) { return value_or_raise(parse_signature(text)); }

const MountPoint& mount_of(const Storage& storage, const std::string& path) {
  if (const MountPoint* mount = storage.find_mount_point(path)) return *mount;
  raise_python(PyExc_ValueError, fmt::format("mount_point '{}' is not in the storage description", path));
}

CostModel model_of(const std::string& name) {
  if (name == "mixed") return CostModel::mixed;
  if (name == "paper") return CostModel::paper;
  raise_python(PyExc_ValueError, fmt::format("model must be 'mixed' or 'paper', got '{}'", name));
}

nb::object as_python(const std::string& json_text) { return nb::module_::import_("json").attr("loads")(json_text); }

nb::dict predict_dict(const std::string& text, const Storage& storage, const std::string& mount_point,
                      const std::string& model) {
  const MountPoint& mount = mount_of(storage, mount_point);
  const Workload workload = workload_of(signature_of(text), mount);
  const Prediction prediction =
      predict(workload, *storage.find_device(mount.device), mount.block_bytes, model_of(model));
  nb::dict result;
  result["throughput_bytes_per_s"] = prediction.throughput_bytes_per_s;
  result["operation_s"] = prediction.operation_s;
  result["limit"] = name_of(prediction.limit);
  return result;
}

const Device& device_of(const Storage& storage, const std::string& mount_point) {
  return *storage.find_device(mount_of(storage, mount_point).device);
}

Structure structure_below(const Storage& storage, const std::string& mount_point, std::uint64_t size_bytes) {
  return value_or_raise(structure_of(storage, device_of(storage, mount_point), size_bytes));
}

nb::dict simulation_dict(const Storage& storage, const std::string& mount_point, std::uint64_t size_bytes,
                         std::uint64_t seed, double precision) {
  const Structure structure = structure_below(storage, mount_point, size_bytes);
  Result<Simulation> told = [&] {
    const nb::gil_scoped_release others_may_run;
    return simulate_mttdl(structure, {.seed = seed, .precision = precision});
  }();
  const Simulation simulation = value_or_raise(std::move(told));
  nb::dict result;
  result["mttdl_s"] = simulation.mttdl_s;
  result["ci95_low_s"] = simulation.ci95_low_s;
  result["ci95_high_s"] = simulation.ci95_high_s;
  result["losses"] = simulation.losses;
  return result;
}

}  // namespace

NB_MODULE(_core, module) {
  nb::class_<MountPoint>(module, "MountPoint")
      .def_ro("path", &MountPoint::path)
      .def_ro("device", &MountPoint::device)
      .def_ro("filesystem", &MountPoint::filesystem)
      .def_ro("block_bytes", &MountPoint::block_bytes)
      .def_ro("free_bytes", &MountPoint::free_bytes)
      .def_ro("persistent", &MountPoint::persistent)
      .def_prop_ro("is_global", [](const MountPoint& mount) { return mount.visibility == Visibility::global; });

  nb::class_<Storage>(module, "Storage").def_prop_ro("mount_points", [](const Storage& storage) {
    return storage.mount_points;
  });

  module.def(
      "parse_signature", [](const std::string& text) { return signature_text(signature_of(text)); }, "text"_a);
  module.def(
      "read_storage", [](const std::string& path) { return value_or_raise(read_storage_file(path)); }, "path"_a);
  module.def("find_storage", [] {
    const auto file = value_or_raise(find_storage_file());
    return file ? std::optional(file->path) : std::nullopt;
  });
  module.def("predict", predict_dict, "signature"_a, "storage"_a, "mount_point"_a, "model"_a = "mixed");
  module.def(
      "uncorrectable_bit_error_rate",
      [](double ber, std::uint32_t sector_bits, std::uint32_t ecc_bits) {
        if (!(ber >= 0 && ber <= 1) || ecc_bits >= sector_bits)
          raise_python(PyExc_ValueError,
                       fmt::format("expected ber from 0 to 1 and ecc_bits below sector_bits, got {}, {} "
                                   "and {}",
                                   ber, ecc_bits, sector_bits));
        return uncorrectable_bit_error_rate(ber, sector_bits, ecc_bits);
      },
      "ber"_a, "sector_bits"_a, "ecc_bits"_a);
  module.def(
      "chain_mttdl_s",
      [](const Storage& storage, const std::string& mount_point, std::uint64_t size_bytes) {
        return value_or_raise(chain_mttdl_s(structure_below(storage, mount_point, size_bytes)));
      },
      "storage"_a, "mount_point"_a, "size_bytes"_a);
  module.def(
      "eq2_mttdl_s",
      [](const Storage& storage, const std::string& mount_point, std::uint64_t size_bytes) {
        return value_or_raise(eq2_mttdl_s(storage, device_of(storage, mount_point), size_bytes));
      },
      "storage"_a, "mount_point"_a, "size_bytes"_a);
  module.def("simulate_mttdl", simulation_dict, "storage"_a, "mount_point"_a, "size_bytes"_a, "seed"_a = 1,
             "precision"_a = SimulationOptions{}.precision);
  module.def(
      "choose",
      [](const std::string& text, const Storage& storage, const std::string& model, const std::string& policy,
         const std::optional<std::string>& home) {
        const Signature wanted = signature_of(text);
        Circumstances given{.policy = value_or_raise(parse_policy(policy)), .page_cache = ask_page_cache()};
        if (home) {
          given.home = Home{mount_of(storage, *home).path};
          given.residence = Residence::home;
        }
        Choice choice = choose_mount_point(wanted, storage, given, model_of(model));
        explain_reliability(wanted, storage, choice);
        explain_break_even(wanted, storage, given, choice);
        return as_python(choice_json(choice).dump());
      },
      "signature"_a, "storage"_a, "model"_a = "mixed", "policy"_a = "job", "home"_a = nb::none());
  python::bind_pattern(module);
  python::bind_detection(module);
  python::bind_lookup(module);
  python::bind_striping(module);
  python::bind_collective(module);
  python::bind_directives(module);
  python::bind_trace(module);
  python::bind_trace_summary(module);
  python::bind_simulation(module);
}
