#include "libiosig/decision.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>

#include "host/diagnostics.h"
#include "host/process.h"
#include "host/run_isolated.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/config/storage_file.h"
#include "iosig/decide/placement.h"
#include "iosig/enact/agreement.h"
#include "iosig/enact/circumstances.h"
#include "iosig/enact/link_check.h"
#include "iosig/enact/redirect.h"
#include "iosig/enact/reserve.h"
#include "libiosig/deleted_links.h"

namespace iosig::runtime {
namespace {

struct Decision {
  Outcome outcome;
  std::string why;
  std::string topic = {};  ///< if not empty, the message is printed once per topic
};

Decision trouble(const Error& error) { return {Outcome::failed, error.message, "trouble"}; }

/// For a user who asked for messages: says once that the chosen mount point may fill up although home has room.
void warn_of_room(const Signature& signature, const Storage& described, const Circumstances& given,
                  const Choice& choice) {
  Storage storage = described;
  for (MountPoint& mount : storage.mount_points)
    if (mount.path == choice.chosen || (given.home && mount.path == given.home->mount_point)) ask_free_space(mount);
  if (const std::string warning = room_warning(signature, storage, given, choice); !warning.empty())
    say_once("room", "warning: " + warning);
}

Decision decide(int dirfd, const char* path, const char* signature_words) {
  const auto declared = parsed(signature_words);
  if (!declared) return {Outcome::failed, declared.error().message, fmt::format("signature {}", signature_words)};
  const auto described = storage_description();
  if (!described) return {Outcome::failed, described.error().message, "storage"};
  const Storage& storage = **described;
  drop_deleted_data(Among::few);  // frees space for new data
  // The program's own open will fail for the same reason and report it.
  const auto place = locate(dirfd, path);
  if (!place) return {Outcome::stays, place.error().message};
  const Agreed agreed = agree(*declared, *place, storage);
  const Signature& signature = agreed.signature;
  const std::string assumed = agreed.why.empty() ? "" : fmt::format("; {}", agreed.why);
  // A stream without a totalsize gets no reservation, and what is reserved for others is not room for it.
  const auto ask = [&](MountPoint& mount) {
    ask_room(mount, signature.total_bytes.value_or(std::numeric_limits<std::uint64_t>::max()));
  };

  const auto given = circumstances_at(
      &*place, signature, storage, {.residence = Residence::rest, .redirect_s = Asked::redirect_by_hint_s}, page_cache);
  if (!given) return {Outcome::failed, given.error().message, "policy"};

  // A round is repeated if another process has reserved the space at the same moment.
  for (std::size_t rounds_left = storage.mount_points.size();; --rounds_left) {
    const Choice choice = choose_mount_point(signature, storage, *given, ask);
    if (!choice.chosen) {
      std::string why =
          fmt::format("no mount point admits '{}'{}; the stream stays where it is", signature_words, assumed);
      for (const Candidate& candidate : choice.candidates)
        why += fmt::format("\n  {}: {}", candidate.mount_point, fmt::join(candidate.reasons, "; "));
      return {Outcome::failed, std::move(why), fmt::format("signature {}", signature_words)};
    }
    const auto there = lies_on(*place, *choice.chosen);
    if (!there) return trouble(there.error());
    if (*there) return {Outcome::stays, fmt::format("it is best placed there, on {}{}", *choice.chosen, assumed)};
    if (const auto possible = links_lead_on(*place, storage); !possible)
      return {Outcome::failed, possible.error().message, "links"};
    const MountPoint& mount = *storage.find_mount_point(*choice.chosen);
    if (is_verbose()) warn_of_room(signature, storage, *given, choice);
    const auto made = make_link(*place, mount, with_residence(signature, mount, *given), RedirectedBy::runtime);
    if (!made && made.error().kind == ErrorKind::infeasible && rounds_left > 1) continue;
    if (!made && !links_lead_on(*place, storage)) return {Outcome::failed, made.error().message, "links"};
    if (!made) return trouble(made.error());
    if (!*made) return {Outcome::stays, "somebody else created it at the same moment"};
    if (goes_with_its_link((*made)->signature)) remember_link(HeldLink(*place), **made);
    if (!is_verbose()) return {Outcome::redirected, {}};
    return {Outcome::redirected,
            fmt::format("now leads to {} (best for '{}', predicted {}{})", (*made)->destination, signature_words,
                        about_rate(choice.candidates.front().throughput_bytes_per_s), assumed)};
  }
}

/// The path is a link whose target does not exist. It is either another program's link, or a redirected file that is
/// not written yet; the latter may need its directory made on this node first.
Decision follow(int dirfd, const char* path, const char* signature_words) {
  const auto declared = parsed(signature_words);
  const auto described = storage_description();
  const auto place = locate(dirfd, path);
  if (!declared || !described || !place) return {Outcome::stays, "it exists already"};
  const auto joined = join(*place, *declared, **described);
  if (!joined) return {Outcome::failed, joined.error().message, "join"};
  return {Outcome::stays,
          *joined ? "it is redirected already; this node has its own file behind the link" : "it exists already"};
}

/// The result of the cheap checks, which come first: for most opens they already give a reason not to redirect.
enum class Standing { nothing, dangling_link, leave_alone };
struct Seen {
  Standing standing = Standing::leave_alone;
  const char* reason = nullptr;
};

Seen look_at(int dirfd, const char* path, const char* signature) {
  if (signature == nullptr) return {.reason = "there is no signature"};
  if (is_disabled()) return {.reason = "IOSIG is switched off for this process"};
  if (path == nullptr) return {.reason = "there is no path"};
  struct stat status {};
  if (::fstatat(dirfd, path, &status, AT_SYMLINK_NOFOLLOW) == 0) {
    if (S_ISLNK(status.st_mode) && ::faccessat(dirfd, path, F_OK, 0) != 0) return {Standing::dangling_link};
    return {.reason = "it exists already"};
  }
  if (errno != ENOENT) return {.reason = "its path cannot be followed"};
  return {Standing::nothing};
}

Outcome report(const char* path, const Decision& decision) {
  set_last_error(decision.outcome == Outcome::redirected ? std::string_view{} : decision.why);
  if (is_verbose())
    say(fmt::format("'{}': {}", printable(path != nullptr ? path : ""), decision.why));
  else if (!decision.topic.empty())
    say_once(decision.topic, decision.why);
  return decision.outcome;
}

/// Runs `step` isolated. If that is impossible, for example because the thread runs isolated already, the stream stays
/// where it is.
template <class Step>
Outcome visit(Step step) noexcept {
  Outcome outcome = Outcome::stays;
  if (!run_isolated([&] { outcome = step(); }))
    set_last_error("out of memory, called from within a decision, or in a child that fork did not make");
  return outcome;
}

}  // namespace

Outcome redirect(int dirfd, const char* path, const char* signature) noexcept {
  const ErrnoKept kept;
  const Seen seen = look_at(dirfd, path, signature);
  if (seen.standing == Standing::leave_alone) return decline(path, seen.reason);
  const auto enact = seen.standing == Standing::nothing ? decide : follow;
  return visit([&] { return report(path, enact(dirfd, path, signature)); });
}

Outcome decline(const char* path, const char* why) noexcept {
  if (is_verbose()) return visit([&] { return report(path, {Outcome::stays, why}); });
  set_last_error(why);  // the usual case: no signals need to be blocked
  return Outcome::stays;
}

}  // namespace iosig::runtime
