// The writes of a killed writer that a power failure left without their data.
#pragma once

#include <cstdint>

#include "iosig/container/read/content.h"

namespace iosig {

/// Removes the writes whose data lie behind the end of the data dropping, and returns how many they were. The device
/// had stored their frame or record, but not their data, which no sync() had asked for. The file is then as if
/// they had never been made, as with an ordinary file whose last writes did not reach the device.
///
/// The caller knows that the writer is dead, and that no byte is missing that it had synced: else the dropping was
/// damaged. Removes nothing if the dropping does not exist.
std::uint64_t drop_unstored_writes(WriterContent& writer);

}  // namespace iosig
