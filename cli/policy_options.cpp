#include "policy_options.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/decide/placement.h"
#include "iosig/format/signature_text.h"
#include "iosig/model/choice.h"

namespace iosig::cli {

void add_policy_options(Verb verb, PolicyOptions& options) {
  verb.add_option("--policy", options.policy,
                  "job: least time until the data are where they must be (the default); paper: highest throughput")
      .check(one_of({"job", "paper"}))
      .type_name("NAME");
  verb.add_option("--min-gain", options.min_gain,
                  "leave the path's own mount point only to save this share of the time (20%)")
      .type_name("SHARE");
}

Result<Asked> asked_by(const PolicyOptions& options, Residence residence) {
  Asked asked{.residence = residence};
  if (!options.policy.empty()) {
    const auto policy = parse_policy(options.policy);
    if (!policy) return pass_on(policy.error());
    asked.policy = *policy;
  }
  if (!options.min_gain.empty()) {
    const auto share = parse_share(options.min_gain);
    if (!share) return fail(ErrorKind::usage, "--min-gain: {}", share.error().message);
    asked.min_gain = *share;
  }
  return asked;
}

Result<Place> home_at(const std::string& path) {
  struct stat status {};
  const bool is_directory = ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  return locate(AT_FDCWD, is_directory ? path + "/file" : path);
}

std::string break_even_text(const Choice& choice, std::string_view separator) {
  std::string text;
  const bool stays = choice.policy == Policy::job && choice.chosen && choice.candidates.front().is_home;
  if (stays && choice.break_even.empty() && choice.candidates.size() > 1)
    return fmt::format("{}no other place would win, with up to {} passes over the data or as temp", separator,
                       max_break_even_passes);
  for (const BreakEven& each : choice.break_even) {
    text += fmt::format("{}{} would win", separator, printable(each.mount_point));
    if (each.passes) text += fmt::format(" from {} passes over the data", *each.passes);
    if (each.as_temp) text += fmt::format("{} if the data were temp", each.passes ? ", or" : "");
  }
  return text;
}

}  // namespace iosig::cli
