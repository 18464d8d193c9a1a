#include "iosig/observe/device_uses.h"

namespace iosig::observe {

void DeviceUses::set(const trace::Access& access) {
  const char* const address = access.path.empty() ? nullptr : access.path.data();
  const auto [known, is_new] = uses_[access.process].try_emplace(address);
  if (is_new) known->second = made(access.path, access.process->host);
  current_ = &known->second;
}

void DeviceUses::add_energy(Row& row) const {
  for (const auto& [number, in_flight] : row.on_devices) {
    const DeviceOfNode& device = all_[number];
    row.devices.push_back(
        {.unit = device.unit,
         .host = device.host,
         .busy_ns = in_flight.busy(),
         .active_j = device.unit->active_power_w * static_cast<double>(in_flight.busy()) / 1e9,
         .idle_j = device.unit->idle_power_w * static_cast<double>(row.wall_ns() - in_flight.busy()) / 1e9});
  }
}

DeviceUses::Use DeviceUses::made(std::string_view path, std::string_view host) {
  Use use{.place = &powers_->place_of(path), .devices = {}};
  for (const std::uint32_t number : use.place->units) {
    const PowerUnit* const unit = &powers_->units()[number];
    const DeviceOfNode device{.unit = unit, .host = unit->is_global ? std::string_view{} : host};
    const auto [known, is_new] = numbers_.try_emplace({unit, device.host}, static_cast<std::uint32_t>(all_.size()));
    if (is_new) all_.push_back(device);
    use.devices.push_back(known->second);
  }
  return use;
}

}  // namespace iosig::observe
