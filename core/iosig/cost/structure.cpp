#include "iosig/cost/structure.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include "iosig/cost/reliability.h"

namespace iosig {
namespace {

using Kind = Structure::Kind;

constexpr std::size_t max_levels = 8;         // as in storage.toml; also ends cycles of members
constexpr std::size_t max_devices = 250'000;  // enough for the largest single code that storage.toml can describe

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

/// Returns whether the data survive the loss of any one device.
bool is_protected(const Structure& structure) {
  if (structure.kind == Kind::device) return false;
  if (structure.kind == Kind::local_codes || structure.parity > 0) return true;
  return std::ranges::all_of(structure.parts, is_protected);
}

class Builder {
 public:
  explicit Builder(const Storage& storage) {
    for (const Device& device : storage.devices) devices_by_name_.emplace(device.name, &device);
  }

  Result<Structure> composite(const Device& device, double size_bytes, std::size_t level = 1) {
    if (level > max_levels)
      return fail(ErrorKind::bad_input, "'{}' is a member of itself, or of members more than {} deep", device.name,
                  max_levels);
    const auto code = code_of(*device.redundancy);
    if (!code) return fail(code.error().kind, "{}: {}", device.name, code.error().message);
    if (!is_positive(device.mttr_s))
      return fail(ErrorKind::bad_input, "the mttr of '{}' is {} s; expected a time above 0", device.name,
                  device.mttr_s);
    const Structure empty{.kind = Kind::code, .repairs_per_s = 1 / device.mttr_s};
    const bool is_stripe = device.redundancy->scheme == RedundancyScheme::stripe;
    const double part_bytes = size_bytes / (is_stripe ? code->data : code->groups);
    std::size_t next = 0;
    /// Moves the next `count` members into `whole`.
    const auto take = [&](Structure& whole, std::size_t count) -> Result<void> {
      for (; count > 0; --count) {
        auto part = member(device, next++, part_bytes, level);
        if (!part) return pass_on(std::move(part.error()));
        whole.parts.push_back(*std::move(part));
      }
      return {};
    };
    /// Moves the next members into `whole` as `groups` codes of `data` and `parity` each.
    const auto take_groups = [&](Structure& whole, std::uint32_t groups, std::uint32_t data,
                                 std::uint32_t parity) -> Result<void> {
      for (; groups > 0; --groups) {
        Structure group = empty;
        group.parity = parity;
        if (auto taken = take(group, std::size_t{data} + parity); !taken) return taken;
        whole.parts.push_back(std::move(group));
      }
      return {};
    };
    Structure whole = empty;
    Result<void> taken;
    if (code->local_groups > 0) {
      whole.kind = Kind::local_codes;
      whole.parity = code->parity;
      taken = take_groups(whole, code->local_groups, code->data / code->local_groups, 1).and_then([&] {
        return take(whole, code->parity);
      });
    } else if (code->groups > 1) {
      taken = take_groups(whole, code->groups, code->data, code->parity);
    } else {
      whole.parity = code->parity;
      taken = take(whole, std::size_t{code->data} + code->parity);
    }
    if (!taken) return pass_on(std::move(taken.error()));
    return whole;
  }

 private:
  Result<Structure> member(const Device& of, std::size_t index, double size_bytes, std::size_t level) {
    const auto& names = of.redundancy->members;
    const auto named = names.empty() ? devices_by_name_.end() : devices_by_name_.find(names[index]);
    if (!names.empty() && named == devices_by_name_.end())
      return fail(ErrorKind::bad_input, "there is no device '{}', a member of '{}'", names[index], of.name);
    const Device* device = names.empty() ? &of : named->second;
    if (device != &of && device->redundancy) return composite(*device, size_bytes, level + 1);
    if (++devices_ > max_devices)
      return fail(ErrorKind::bad_input, "'{}' stands on more than {} devices", of.name, max_devices);
    return simple(*device, of, size_bytes);
  }

  static Result<Structure> simple(const Device& device, const Device& of, double size_bytes) {
    if (!device.mttf_s) {
      if (&device == &of) return fail(ErrorKind::infeasible, "the mttf of the members of '{}' is not known", of.name);
      return fail(ErrorKind::infeasible, "the mttf of '{}', a member of '{}', is not known", device.name, of.name);
    }
    if (!is_positive(*device.mttf_s))
      return fail(ErrorKind::bad_input, "the mttf of '{}' is {} s; expected a time above 0", device.name,
                  *device.mttf_s);
    const auto uber = uber_of(device);
    if (!uber) return pass_on(uber.error());
    return Structure{.failures_per_s = 1 / *device.mttf_s, .unreadable = 8 * size_bytes * *uber};
  }

  std::unordered_map<std::string_view, const Device*> devices_by_name_;
  std::size_t devices_ = 0;
};

}  // namespace

Result<Structure> structure_of(const Storage& storage, const Device& device, std::uint64_t size_bytes) {
  if (!device.redundancy)
    return fail(ErrorKind::infeasible, "'{}' is one simple device, without redundancy", device.name);
  auto structure = Builder(storage).composite(device, static_cast<double>(size_bytes));
  if (structure && !is_protected(*structure))
    return fail(ErrorKind::infeasible, "'{}' is a stripe, without redundancy", device.name);
  return structure;
}

}  // namespace iosig
