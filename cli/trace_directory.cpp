#include "trace_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "iosig/base/machine.h"
#include "iosig/base/text.h"
#include "iosig/trace/clock_pair.h"
#include "iosig/trace/part_bytes.h"

namespace iosig::cli {
namespace {

std::string variable_text(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

/// Makes the file that counts what has no part (trace::Unrecorded). Without it nothing is counted.
void make_unrecorded(const Fd& directory) {
  const Fd file(
      ::openat(directory.get(), trace::unrecorded_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  write_in_place(file.get());
  trace::Unrecorded content{};
  std::ranges::copy(trace::unrecorded_magic, content.magic);
  const std::string_view bytes(reinterpret_cast<const char*>(&content), sizeof content);
  if (file && !write_all(file.get(), bytes, trace::unrecorded_name))
    ::unlinkat(directory.get(), trace::unrecorded_name, 0);
}

/// The command's first words, in at most 64 KiB; "..." stands for the others. Readers take a manifest of 1 MiB.
std::vector<std::string> shortened(const std::vector<std::string>& command) {
  constexpr std::size_t max_bytes = 64u << 10;
  std::vector<std::string> words;
  std::size_t bytes = 0;
  for (const std::string& word : command) {
    bytes += word.size() + 1;
    words.push_back(bytes <= max_bytes ? word : "...");
    if (bytes > max_bytes) break;
  }
  return words;
}

/// Two clocks, read together before the program starts: a part that has one reading only gets its rate from them.
nlohmann::ordered_json clock_now() {
  const trace::ClockPair pair = trace::clock_pair(trace::read_tsc);
  return {{"boot", trace::boot_number(boot_id())}, {"ticks", pair.ticks}, {"monotonic_ns", pair.monotonic_ns}};
}

/// Writes the manifest; false: there is one already. `shown`: the directory.
Result<bool> make_manifest(const Fd& directory, const nlohmann::ordered_json& manifest, const std::string& shown) {
  const std::string text = manifest.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const std::string draft = fmt::format(".{}.{}.{}", trace_manifest_name, host_name(), ::getpid());
  {
    const Fd file(
        ::openat(directory.get(), draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return system_failure("write", shown);
    if (auto done = write_all(file.get(), text, shown); !done) {
      ::unlinkat(directory.get(), draft.c_str(), 0);
      return pass_on(done.error());
    }
  }
  const bool is_made = ::linkat(directory.get(), draft.c_str(), directory.get(), trace_manifest_name, 0) == 0;
  const int failure = errno;
  ::unlinkat(directory.get(), draft.c_str(), 0);
  if (is_made || failure == EEXIST) return is_made;
  return system_failure("write", fmt::format("{}/{}", shown, trace_manifest_name), failure);
}

}  // namespace

std::string job_name() {
  for (const char* variable : {"PMIX_NAMESPACE", "PALS_APID", "FLUX_JOB_ID", "PMI_JOBID"})
    if (std::string name = variable_text(variable); !name.empty()) return name;
  const std::string job = variable_text("SLURM_JOB_ID"), step = variable_text("SLURM_STEP_ID");
  return job.empty() || step.empty() ? std::string() : fmt::format("{}.{}", job, step);
}

Result<TraceDirectory> make_trace_directory(const std::string& directory, const TraceManifest& manifest) {
  TraceDirectory made;
  made.path = std::filesystem::absolute(directory).lexically_normal().string();
  if (::mkdir(made.path.c_str(), 0700) != 0 && errno != EEXIST) return system_failure("make", directory);
  made.fd = Fd(::open(made.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!made.fd) return system_failure("open", directory);
  nlohmann::ordered_json text{{"schema", "iosig.trace/1"}, {"command", shortened(manifest.command)},
                              {"host", host_name()},       {"started_ns", unix_ns()},
                              {"job", job_name()},         {"calls", manifest.calls},
                              {"files", manifest.files},   {"sources", manifest.sources}};
  if (!manifest.mount.empty()) text["mount"] = manifest.mount;
  if (manifest.has_tsc_clock) text["clock"] = clock_now();
  make_unrecorded(made.fd);
  const auto is_new = make_manifest(made.fd, text, directory);
  if (!is_new) return pass_on(is_new.error());
  made.is_new = *is_new;
  return made;
}

tl::unexpected<Error> another_trace(const std::string& directory, std::string_view option) {
  return fail(ErrorKind::usage, "'{0}' has a trace already; name another directory with {1}, or remove it: rm -r '{0}'",
              printable(directory), option);
}

}  // namespace iosig::cli
