// The checksum manifest of a sealed file <-> text. The format is docs/formats/manifest.md; `sha256sum -c` reads it too.
//
// Pure: text in, text out. enact/seal seals files and compares them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "iosig/base/result.h"
#include "iosig/model/signature.h"

namespace iosig {

struct Manifest {
  std::string name;  ///< of the data file, in the manifest's directory
  std::string path;  ///< the path that the program opened, absolute
  Signature signature;
  std::uint64_t size_bytes = 0;
  std::int64_t modified_unix_ns = 0;  ///< of the data when sealed
  std::int64_t sealed_unix_s = 0;
  std::string sha256;  ///< of the data: 64 lower-case hexadecimal digits

  bool operator==(const Manifest&) const = default;
};

/// parse_manifest(manifest_text(m)) == m; names and paths are arbitrary bytes.
[[nodiscard]] std::string manifest_text(const Manifest& manifest);

/// Fails with `bad_input`, "source:line: what was expected", for a manifest that is truncated, modified or of a newer
/// version. The manifest's own checksum detects accidental changes, not tampering.
[[nodiscard]] Result<Manifest> parse_manifest(std::string_view text, std::string_view source);

/// The beginning of every manifest of any version.
inline constexpr std::string_view manifest_begin = "# iosig.manifest/";

/// Returns the manifest's name: "<data_name>.sha256", truncated to the length that file systems allow.
[[nodiscard]] std::string manifest_name(std::string_view data_name);

}  // namespace iosig
