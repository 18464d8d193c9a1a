#include "reliability_source.h"

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "storage_source.h"

namespace iosig::cli {

void add_reliability_options(CLI::App& verb, ReliabilityOptions& options) {
  verb.add_option("--storage", options.storage, "Storage description instead of $IOSIG_STORAGE or the user's file")
      ->type_name("FILE");
  verb.add_option("--mount-point", options.mount_point, "Where the data are")->type_name("PATH")->required();
  verb.add_option("--size", options.size, "How much data, e.g. 1TB")->type_name("SIZE")->required();
}

Result<ReliabilitySubject> reliability_subject(const ReliabilityOptions& options, const Console& console) {
  const auto size = parse_bytes(options.size);
  if (!size) return fail(ErrorKind::usage, "--size: {}", size.error().message);
  if (*size == 0) return fail(ErrorKind::usage, "--size: 0 bytes cannot be lost; expected at least 1B");
  auto source = load_storage(options.storage, console);
  if (!source) return pass_on(std::move(source.error()));
  const auto mount = described_mount_point(source->storage, options.mount_point);
  if (!mount) return pass_on(mount.error());
  const Device& device = *source->storage.find_device((*mount)->device);
  auto structure = structure_of(source->storage, device, *size);
  if (!structure)
    return fail(structure.error().kind, "'{}' is not considered as reliable: {}", printable(options.mount_point),
                structure.error().message);
  ReliabilitySubject subject{{}, source->file, **mount, device, *size, *std::move(structure)};
  subject.storage = std::move(source->storage);
  return subject;
}

}  // namespace iosig::cli
