// The choices that the IOSIG paper reports in sections 7.1 and 7.3, from its own Table 2.

#include <doctest/doctest.h>

#include "iosig/base/files.h"
#include "iosig/base/units.h"
#include "iosig/decide/placement.h"
#include "iosig/format/signature_text.h"
#include "iosig/format/storage_toml.h"

using namespace iosig;

namespace {
std::string chosen(const std::string& signature, CostModel model = CostModel::mixed) {
  static const Storage table2 = *parse_storage(*read_file(IOSIG_TEST_DATA "/paper-table2.toml"), "table2");
  return choose_mount_point(*parse_signature(signature), table2, {.policy = Policy::paper}, model)
      .chosen.value_or("none");
}
}  // namespace

TEST_CASE("Fig. 11b, c: ps1 to ps4 get nfs, raid1, nvram and ramdisk at every chunk size from 32 KB to 32 MB") {
  for (std::uint64_t chunk = 32 * KiB; chunk <= 32 * MiB; chunk *= 2) {
    for (const CostModel model : {CostModel::mixed, CostModel::paper}) {
      const std::string rest = fmt::format(" random totalsize(1GB) size-per-IO({})", bytes_text(chunk));
      CAPTURE(rest);
      CHECK(chosen("global" + rest, model) == "/paper/nfs");
      CHECK(chosen("MTTDL(20y)" + rest, model) == "/paper/raid1");
      CHECK(chosen("persist" + rest, model) == "/paper/nvram");
      CHECK(chosen(rest, model) == "/paper/ramdisk");
    }
  }
}

TEST_CASE("Fig. 11a, 6a: at 6 GB, persistent and sequential, nfs wins below 88 MB chunks and the hdd from there on") {
  for (int megabytes = 16; megabytes <= 2048; ++megabytes) {
    CAPTURE(megabytes);
    const std::string expected = megabytes < 88 ? "/paper/nfs" : "/paper/hdd";
    CHECK(chosen(fmt::format("persist sequential totalsize(6GB) size-per-IO({}MB)", megabytes)) == expected);
  }
}
