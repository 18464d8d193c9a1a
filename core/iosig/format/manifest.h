// The checksum manifest of a sealed file <-> text. The format is docs/formats/manifest.md; `sha256sum -c` reads it too.
//
// Pure: text in, text out. Who seals and who compares is enact/seal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/signature.h"

namespace iosig {

struct Manifest {
  std::string name;  ///< of the data's file, which stood beside the manifest
  std::string path;  ///< what the program opened, absolute
  Signature signature;
  std::uint64_t size_bytes = 0;
  std::int64_t modified_unix_ns = 0;  ///< of the data when they were sealed
  std::int64_t sealed_unix_s = 0;
  std::string sha256;  ///< of the data: 64 lower-case hexadecimal digits

  bool operator==(const Manifest&) const = default;
};

/// parse_manifest(manifest_text(m)) == m; names and paths are arbitrary bytes.
[[nodiscard]] std::string manifest_text(const Manifest& manifest);

/// Fails with `bad_input`, "source:line: what was expected", for one that was cut, changed, or written by a newer
/// version. A line that changed shows by the manifest's own checksum: that is against accidents, not against malice.
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text, std::string_view source);

/// Every manifest begins so, whatever its version.
inline constexpr std::string_view manifest_begin = "# iosig.manifest/";

/// Of the file beside `data_name`: "<data_name>.sha256", cut to what a file system takes.
[[nodiscard]] std::string manifest_name(std::string_view data_name);

}  // namespace iosig
