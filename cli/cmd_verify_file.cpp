// `iosig verify-file`: verifies sealed data (tamperproof, archive) against their checksum manifest. Changes nothing.

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/seal.h"
#include "iosig/format/signature_text.h"

namespace iosig::cli {
namespace {

using nlohmann::ordered_json;

struct VerifyFileArguments {
  std::vector<std::string> paths;
  std::string manifest;
};

constexpr std::uint64_t long_read_bytes = 256 * MiB;  ///< larger files show progress

/// Returns the place of the data to which `path` leads.
Result<Place> data_of(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path data = std::filesystem::canonical(path, failure);
  if (!failure) return locate(AT_FDCWD, data.string());
  if (failure == std::errc::no_such_file_or_directory && std::filesystem::is_symlink(path, failure))
    return fail(ErrorKind::infeasible, "'{}': the data that it leads to are gone", printable(path));
  return system_failure("find", path, failure.value());
}

std::string what_differs(const Verdict& verdict) {
  if (verdict.size_bytes != verdict.manifest.size_bytes)
    return fmt::format("{} bytes, sealed with {}", verdict.size_bytes, verdict.manifest.size_bytes);
  return fmt::format("same size, other content: SHA-256 {}, sealed with {}", verdict.sha256, verdict.manifest.sha256);
}

std::string verdict_sentence(const std::string& path, const Verdict& verdict) {
  if (!verdict.intact()) return fmt::format("'{}': ALTERED ({})", printable(path), what_differs(verdict));
  const std::string size = about_bytes(static_cast<double>(verdict.size_bytes));
  const std::string closed =
      fmt::format("{}{}", verdict.closed_by.empty() ? "" : ", ", fmt::join(verdict.closed_by, ", "));
  return fmt::format("'{}': intact ({}{})", printable(path), size, closed);
}

int run_verify_file(const VerifyFileArguments& options, Console& console) {
  if (!options.manifest.empty() && options.paths.size() != 1)
    return console.fail({ErrorKind::usage, "--manifest goes with one path"});
  int status = yes;
  ordered_json files = ordered_json::array(), refused = ordered_json::array();
  for (const std::string& path : options.paths) {
    const auto progress = [&](const char* doing, std::uint64_t done_bytes, std::uint64_t total_bytes) {
      if (total_bytes < long_read_bytes) return;
      console.progress({fmt::format("{} {}", doing, printable(path)), static_cast<double>(done_bytes),
                        static_cast<double>(total_bytes)});
    };
    const auto verdict =
        data_of(path).and_then([&](const Place& data) { return verify_sealed(data, options.manifest, progress); });
    console.end_progress();
    if (!verdict) {
      refused.push_back({{"path", path}, {"message", verdict.error().message}});
      status = std::max(status, console.fail(verdict.error()));
      continue;
    }
    const std::string text = verdict_sentence(path, *verdict);
    if (!verdict->intact()) status = std::max<int>(status, no);
    if (!console.json) console.say(text);
    files.push_back({{"path", path},
                     {"intact", verdict->intact()},
                     {"manifest", verdict->manifest_path},
                     {"sealed_path", verdict->manifest.path},
                     {"signature", signature_text(verdict->manifest.signature)},
                     {"sealed_unix_s", verdict->manifest.sealed_unix_s},
                     {"sealed_size_bytes", verdict->manifest.size_bytes},
                     {"size_bytes", verdict->size_bytes},
                     {"sealed_sha256", verdict->manifest.sha256},
                     {"sha256", verdict->sha256.empty() ? ordered_json() : ordered_json(verdict->sha256)},
                     {"closed_by", verdict->closed_by},
                     {"message", text}});
  }
  if (console.json) console.say_json("iosig.verify-file/1", {{"files", files}, {"refused", refused}});
  return status;
}

}  // namespace

void add_verify_file(Verb app, Action& action) {
  const Verb verb = app.add_verb("verify-file", "Hold sealed data (tamperproof, archive) against their checksum");
  const auto options = std::make_shared<VerifyFileArguments>();
  verb.add_option("PATH", options->paths, "sealed files, or the links that lead to them").required().type_name("PATH");
  verb.add_option("--manifest", options->manifest, "a copy of the manifest that was kept elsewhere").type_name("FILE");
  verb.footer(
      "Data declared tamperproof or archive stay on the mount point that was chosen; iosig finalize puts a manifest, "
      "<data>.sha256, beside them, which sha256sum -c reads too. A user who can write there can change both: "
      "keep a copy of the manifest where no other user can write, and pass it with --manifest.\n"
      "Exit status: 0 intact, 1 altered or gone, 3 there is no manifest or it is damaged.\n"
      "Example: iosig verify-file ledger.db");
  verb.when_chosen(action, "iosig.verify-file/1",
                   [options](Console& console) { return run_verify_file(*options, console); });
}

}  // namespace iosig::cli
