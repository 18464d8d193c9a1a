// Fuzzes storage.toml: reading, printing, merging, and deciding with whatever was accepted.
#include "iosig/decide/placement.h"
#include "iosig/format/storage_toml.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

/// Asks for everything, so that every formula is evaluated.
Signature demanding() {
  Signature signature;
  signature.total_bytes = GiB;
  signature.mttdl_s = year_s;
  signature.availability = 1e-6;
  signature.access = AccessOrder::random;
  signature.bytes_per_io = 64 * KiB;
  signature.read_share = 0.3;
  return signature;
}

/// `storage` as a probe describes it.
Storage probed(Storage storage) {
  for (MountPoint& mount : storage.mount_points)
    for (auto& [key, provenance] : mount.provenance) provenance.origin = Origin::inspected;
  for (Device& device : storage.devices)
    for (auto& [key, provenance] : device.provenance) provenance.origin = Origin::measured;
  if (storage.network)
    for (auto& [key, provenance] : storage.network->provenance) provenance.origin = Origin::measured;
  return storage;
}

}  // namespace

void try_one(std::string_view text) {
  const auto storage = parse_storage(text, "storage.toml");
  if (!storage) {
    const std::string& message = storage.error().message;
    hold(storage.error().kind == ErrorKind::bad_input, "a refusal is bad input", message);
    hold(fuzz::names_a_line(message, "storage.toml"), "a refusal names its place", message);
    return;
  }
  const std::string printed = storage_text(*storage);
  const auto again = parse_storage(printed, "printed");
  hold(again.has_value(), "a printed description is read back", again ? "" : again.error().message + "\n" + printed);
  hold(again->mount_points == storage->mount_points, "mount points are printed whole", printed);
  hold(again->devices == storage->devices, "devices are printed whole", printed);
  hold(again->servers == storage->servers, "servers are printed whole", printed);
  hold(again->network == storage->network, "the network is printed whole", printed);

  const std::string merged = storage_text(merge_probe(*storage, probed(*storage)));
  const auto from_merged = parse_storage(merged, "merged");
  hold(from_merged.has_value(), "a merged description is read back", from_merged ? "" : from_merged.error().message);

  if (storage->mount_points.empty()) return;
  for (const Signature& signature : {Signature{}, demanding()}) {
    const Choice choice = choose_mount_point(signature, *storage, {.home = Home{storage->mount_points.front().path}});
    hold(choice.candidates.size() == storage->mount_points.size(), "every mount point is judged", printed);
  }
}
