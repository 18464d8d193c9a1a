// A model of reads <-> compact, checksummed bytes. The format is docs/formats/read-model.md.
//
// Pure: bytes in, bytes out.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "iosig/model/read_model.h"

namespace iosig {

/// read_model_from_bytes(read_model_bytes(m)) == m for every model that keeps its invariants.
[[nodiscard]] std::vector<std::uint8_t> read_model_bytes(const ReadModel& model);

/// Fails with `bad_input`, "source: byte N: what is wrong", for bytes that are truncated, modified, of another version,
/// or not a valid model. Uses memory proportional to the bytes, whatever sizes they declare.
[[nodiscard]] Result<ReadModel> read_model_from_bytes(std::span<const std::uint8_t> bytes, std::string_view source);

}  // namespace iosig
