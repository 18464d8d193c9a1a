#include "host/binding.h"

#include <fcntl.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>

#include "host/process.h"
#include "iosig/base/text.h"
#include "iosig/base/trust.h"
#include "iosig/config/storage_file.h"
#include "iosig/decide/placement.h"
#include "iosig/enact/circumstances.h"
#include "iosig/enact/place.h"
#include "iosig/enact/redirect.h"
#include "iosig/enact/reserve.h"
#include "iosig/enact/user_directory.h"
#include "iosig/format/container_globs.h"
#include "iosig/format/rules_toml.h"

namespace iosig::runtime {
namespace {

struct Bindings {
  Rules rules;
  std::vector<std::string> globs;
};

/// Returns the bindings of this process. Never destroyed, because exit handlers may open files.
const Bindings& bindings() {
  static const Bindings& only = *[] {
    auto* made = new Bindings;
    if (const std::string file(setting("IOSIG_RULES")); !file.empty()) {
      auto rules = read_configuration(file, Configuration::named).and_then([&](const std::string& text) {
        return parse_rules(text, file);
      });
      if (rules)
        made->rules = *std::move(rules);
      else
        say_once("rules", rules.error().message);
    }
    for (std::string_view rest = setting("IOSIG_CONTAINERS"); !rest.empty();) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) made->globs.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return made;
  }();
  return only;
}

/// Whether the file belongs to the system or to an MPI library, which map such files.
bool is_of_system(const std::string& path) {
  constexpr std::array<std::string_view, 4> directories = {"/dev/", "/proc/", "/sys/", "/run/"};
  return std::ranges::any_of(directories, [&](std::string_view directory) { return path.starts_with(directory); });
}

bool is_named(const std::vector<std::string>& globs, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(globs, [&](const std::string& glob) {
    if ((glob == "*" && is_of_system(path)) || is_shared_memory(glob, path)) return false;
    const bool is_of_names = glob.find('/') == std::string::npos;
    return ::fnmatch(glob.c_str(), is_of_names ? name.c_str() : path.c_str(), is_of_names ? 0 : FNM_PATHNAME) == 0;
  });
}

}  // namespace

Result<std::vector<std::string>> targets_for(const Signature& signature, const std::string& path) {
  const auto described = storage_description();
  if (!described) return pass_on(described.error());
  const auto place = locate(AT_FDCWD, path);
  if (!place) return pass_on(place.error());
  const Storage& storage = **described;
  // The droppings stay where they are, and the path leads to a directory: nothing comes home.
  auto given = circumstances_at(nullptr, signature, storage, {.residence = Residence::rest}, page_cache);
  if (!given) return pass_on(std::move(given.error()));
  // Each target must have room for all of it: one writer's data lie on one target.
  const std::uint64_t needed = signature.total_bytes.value_or(assumed_total_bytes);
  const auto ask = [&](MountPoint& mount) {
    ask_room(mount, needed);
    if (mount.free_bytes && *mount.free_bytes < needed + mount.reserved_bytes + mount.withheld_bytes)
      mount.free_bytes = 0;
  };
  const Choice choice = choose_mount_point(signature, storage, *given, ask, *signature.container_targets);
  std::vector<std::string> directories;
  for (const Candidate& candidate : choice.candidates) {
    if (!candidate.admissible || directories.size() == signature.container_targets) break;
    const auto there = lies_on(*place, candidate.mount_point);
    if (!there) return pass_on(there.error());
    if (*there && *signature.container_targets == 1) return directories;  // the path lies on the best mount point
    auto directory = open_user_directory(candidate.mount_point);
    if (!directory) return pass_on(std::move(directory.error()));
    directories.push_back(std::move(directory->path));
  }
  if (directories.empty())
    return fail(ErrorKind::infeasible, "no mount point admits the signature of '{}'", printable(path));
  if (directories.size() < *signature.container_targets)
    say_once("fewer targets",
             fmt::format("'{}': container({}): {} mount point{} for it; {} all its data", printable(path),
                         *signature.container_targets, directories.size(), directories.size() == 1 ? " is" : "s are",
                         directories.size() == 1 ? "that has" : "they have"));
  return directories;
}

bool has_bindings() {
  static const bool has = !setting("IOSIG_RULES").empty() || !setting("IOSIG_CONTAINERS").empty();
  return has;
}

bool is_bound(const std::string& path) {
  const Bindings& known = bindings();
  const Rule* rule = match_rule(known.rules, path);
  if (rule == nullptr) return is_named(known.globs, path);
  return rule->signature.container_targets.has_value() && !is_shared_memory(rule->path_glob, path);
}

std::optional<Binding> binding_of(const std::string& path) {
  if (!is_bound(path)) return {};
  const Rule* rule = match_rule(bindings().rules, path);
  if (rule == nullptr) return Binding{};
  auto targets = targets_for(rule->signature, path);
  if (targets) return Binding{*std::move(targets)};
  say_once("targets", targets.error().message + "; its data stay in the container");
  return Binding{};
}

bool has_declared_reads() {
  return std::ranges::any_of(bindings().rules.rules, [](const Rule& rule) { return rule.signature.reads.has_value(); });
}

std::optional<DeclaredReads> declared_reads_of(const std::string& path) {
  const Rule* const rule = match_rule(bindings().rules, path);
  return rule == nullptr ? std::nullopt : rule->signature.reads;
}

}  // namespace iosig::runtime
