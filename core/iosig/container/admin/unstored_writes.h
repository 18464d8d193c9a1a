// The writes of a killed writer that a power failure left without their data.
#pragma once

#include <cstdint>

#include "iosig/container/read/content.h"

namespace iosig {

/// Removes the writes whose data lie behind the end of the data dropping, and returns how many they were. The device
/// had stored their frame or record, but not their data, which no sync() had asked for. The file is then as if
/// they had never been made, as with an ordinary file whose last writes did not reach the device.
///
/// The caller knows that the writer is dead. Removes nothing if the dropping does not exist, or bytes that its writer
/// had synced are missing, too: then it was damaged.
std::uint64_t drop_unstored_writes(WriterContent& writer);

}  // namespace iosig
