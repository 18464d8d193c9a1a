// The devices that calls of a trace use, for the rows of an answer (query.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "iosig/observe/query.h"

namespace iosig::observe {

class DeviceUses {
 public:
  /// `powers` must outlive the object; null: nothing is asked, and set() is not called.
  explicit DeviceUses(const DevicePowers* powers) : powers_(powers) {}

  /// The rest is about this call from now on. Its path and its process must outlive the object.
  void set(const trace::Access& access);

  /// Whether the power of its devices is known, or does not matter.
  [[nodiscard]] bool are_known() const { return current_ == nullptr || current_->place->unknown.empty(); }
  [[nodiscard]] const std::string& why_unknown() const { return current_->place->unknown; }
  [[nodiscard]] double active_power_w() const { return current_->place->active_power_w; }
  /// Their numbers, by which Row::on_devices has them.
  [[nodiscard]] std::span<const std::uint32_t> devices() const {
    return current_ == nullptr ? std::span<const std::uint32_t>{} : std::span(current_->devices);
  }

  /// Sets Row::devices from the times on them; in the order of their first use by any call.
  void add_energy(Row& row) const;

 private:
  struct Use {
    const DevicePlace* place = nullptr;
    std::vector<std::uint32_t> devices;
  };
  /// The unit of a node, or one that all nodes share.
  struct DeviceOfNode {
    const PowerUnit* unit;
    std::string_view host;  ///< empty: all
  };
  using Uses = std::unordered_map<const char*, Use>;  ///< by the address of the path

  Use made(std::string_view path, std::string_view host);

  const DevicePowers* powers_;
  std::vector<DeviceOfNode> all_;
  std::map<std::pair<const PowerUnit*, std::string_view>, std::uint32_t> numbers_;
  std::unordered_map<const trace::Process*, Uses> uses_;
  const Use* current_ = nullptr;
};

}  // namespace iosig::observe
