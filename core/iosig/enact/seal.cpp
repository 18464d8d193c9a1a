#include "iosig/enact/seal.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fsverity.h>
#include <nettle/sha2.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <memory>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/enact/change_watch.h"
#include "iosig/enact/destination.h"
#include "iosig/enact/exchange.h"
#include "iosig/enact/own_file.h"

namespace iosig {
namespace {

constexpr std::size_t hashed_piece_bytes = 4u << 20;
constexpr std::uint64_t largest_manifest_bytes = 64u << 10;  // a path of 4096 bytes, each as %XX, and the other fields
constexpr mode_t write_bits = 0222;

Place manifest_of(const Place& data) {
  return {Fd(::fcntl(data.directory.get(), F_DUPFD_CLOEXEC, 0)), data.directory_path, manifest_name(data.name),
          data.device};
}

bool exists(const Place& place) {
  struct stat status {};
  return ::fstatat(place.directory.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
}

std::int64_t modified_unix_ns(const struct stat& status) {
  return status.st_mtim.tv_sec * std::int64_t{1'000'000'000} + status.st_mtim.tv_nsec;
}

bool fits(const Manifest& manifest, const struct stat& data) {
  return manifest.size_bytes == static_cast<std::uint64_t>(data.st_size) &&
         manifest.modified_unix_ns == modified_unix_ns(data);
}

/// An open regular file and its status.
struct OpenData {
  Fd file;
  struct stat status {};
};
Result<OpenData> open_data(const Place& place) {
  OpenData data{open_own_to_read(place)};
  if (!data.file && errno == ENOENT)
    return fail(ErrorKind::infeasible, "'{}': the data are gone", printable(place.path()));
  if (!data.file || ::fstat(data.file.get(), &data.status) != 0) return system_failure("open", place.path());
  if (!S_ISREG(data.status.st_mode))
    return fail(ErrorKind::infeasible, "'{}' is not a regular file: only those can be sealed", printable(place.path()));
  return data;
}

Result<std::string> sha256_of(const OpenData& data, const Place& place, const char* doing,
                              const CopyProgress& progress) {
  sha256_ctx sum;
  sha256_init(&sum);
  std::vector<char> piece(hashed_piece_bytes);
  std::uint64_t done_bytes = 0;
  for (;;) {
    const ssize_t got = ::pread(data.file.get(), piece.data(), piece.size(), static_cast<off_t>(done_bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", place.path());
    if (got == 0) break;
    sha256_update(&sum, static_cast<std::size_t>(got), reinterpret_cast<const std::uint8_t*>(piece.data()));
    done_bytes += static_cast<std::uint64_t>(got);
    if (progress) progress(doing, done_bytes, static_cast<std::uint64_t>(data.status.st_size));
  }
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
  sha256_digest(&sum, digest.size(), digest.data());
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

Result<Manifest> read_manifest(const Place& place) {
  // Through the open directory, so no other user can replace it meanwhile.
  const std::string through = fmt::format("/proc/self/fd/{}/{}", place.directory.get(), place.name);
  struct stat status {};
  if (::fstatat(place.directory.get(), place.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(status.st_mode))
    return fail(ErrorKind::bad_input, "'{}': there is no such manifest", printable(place.path()));
  const auto text = read_file(through, largest_manifest_bytes);
  if (!text) return pass_on(text.error());
  return parse_manifest(*text, printable(place.path()));
}

/// Whether a program has the file open for writing, or has a writable mapping of it. The kernel grants a read lease
/// only if none has. False on file systems without leases, which cannot tell.
bool is_being_written(const Fd& file) {
  (void)::fcntl(file.get(), F_SETSIG, SIGURG);  // as in is_open_elsewhere()
  const bool refused = ::fcntl(file.get(), F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN;
  if (!refused) (void)::fcntl(file.get(), F_SETLEASE, F_UNLCK);
  return refused;
}

tl::unexpected<Error> still_written(const Place& data) {
  return fail(ErrorKind::infeasible, "'{}': a program still writes it; seal it when the program has ended",
              printable(data.path()));
}

/// Returns what protects the file from changes.
std::vector<const char*> closed_by(const Fd& file) {
  struct statx status {};
  std::vector<const char*> all;
  if (::statx(file.get(), "", AT_EMPTY_PATH, STATX_MODE, &status) != 0) return all;
  if ((status.stx_attributes & STATX_ATTR_VERITY) != 0) all.push_back("fs-verity");
  if ((status.stx_mode & write_bits) == 0) all.push_back("read-only");
  if ((status.stx_attributes & STATX_ATTR_IMMUTABLE) != 0) all.push_back("immutable");
  return all;
}

/// Makes every later change fail, where the file system supports it. Requires write permission, so it has no effect on
/// a read-only file.
void enable_verity(const Fd& file) {
  fsverity_enable_arg wanted{};
  wanted.version = 1;
  wanted.hash_algorithm = FS_VERITY_HASH_ALG_SHA256;
  wanted.block_size = 4096;
  (void)::ioctl(file.get(), FS_IOC_ENABLE_VERITY, &wanted);
}

void make_immutable(const Fd& file) {
  int flags = 0;
  if (::ioctl(file.get(), FS_IOC_GETFLAGS, &flags) != 0 || (flags & FS_IMMUTABLE_FL) != 0) return;
  flags |= FS_IMMUTABLE_FL;
  (void)::ioctl(file.get(), FS_IOC_SETFLAGS, &flags);
}

/// Writes and flushes a manifest at `place`, atomically.
Result<void> write_manifest(const Place& place, const Manifest& manifest) {
  return replace_file_in(
      place.directory, place.name, manifest_text(manifest),
      {.draft = fmt::format("{}.draft", cut_to(place.name, 240)), .mode = 0400, .shown = place.path()});
}

/// Step 1 of seal(): returns the manifest at `at`, if there is one.
Result<std::optional<Manifest>> known_manifest(const Place& at, const OpenData& open, const Place& data,
                                               const std::string& path) {
  if (!exists(at)) return std::nullopt;
  auto known = read_manifest(at);
  if (!known) return pass_on(known.error());
  if (!fits(*known, open.status) && known->signature.tamperproof)
    return fail(ErrorKind::infeasible,
                "'{}' was altered after it was sealed; see 'iosig verify-file {}'; nothing was changed",
                printable(path), printable(data.path()));
  return *std::move(known);
}

/// Step 3 of seal().
Result<void> make_read_only(const OpenData& open, const Place& data) {
  enable_verity(open.file);
  // The mode of an immutable file cannot be changed.
  const bool is_writable = (open.status.st_mode & write_bits) != 0;
  if (is_writable && ::fchmod(open.file.get(), open.status.st_mode & 07777 & ~write_bits) != 0)
    return system_failure("make read-only", data.path());
  return {};
}

/// Step 4 of seal(): hashes the data, completes `manifest` and writes it to `at`. A manifest must not describe other
/// bytes than those of the file, so writes are looked for three times: before the data are read (in seal()), before the
/// manifest is written, and after. Restores the mode of data that it does not seal.
///
/// 1. Watch the data, hash them and flush them: what the manifest describes survives a power failure.
/// 2. Refuse if a program writes the data, or has written since they were opened.
/// 3. Write the manifest, atomically.
/// 4. If a program has written meanwhile, remove the manifest. A kill -9 between 3 and 4 leaves a manifest of older
/// bytes;
///    the next run compares it with the size and the time of the data.
Result<Manifest> write_seal(const OpenData& open, const Place& data, const Place& at, Manifest manifest,
                            const CopyProgress& progress) {
  const Fd& file = open.file;
  const auto give_up = [&](tl::unexpected<Error> failure) -> Result<Manifest> {
    (void)::fchmod(file.get(), open.status.st_mode & 07777);
    return failure;
  };
  ChangeWatch watch(data.directory);
  watch.add(data.name, Fd(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0)));
  const auto sha256 = sha256_of(open, data, "sealing", progress);
  if (!sha256) return give_up(pass_on(sha256.error()));
  struct stat after {};
  if (::fsync(file.get()) != 0 || ::fstat(file.get(), &after) != 0) return give_up(system_failure("sync", data.path()));
  manifest.size_bytes = static_cast<std::uint64_t>(after.st_size);
  manifest.modified_unix_ns = modified_unix_ns(after);
  manifest.sealed_unix_s = std::time(nullptr);
  manifest.sha256 = *sha256;
  if (is_being_written(file) || !fits(manifest, open.status)) return give_up(still_written(data));
  if (auto written = write_manifest(at, manifest); !written) return give_up(pass_on(written.error()));
  const auto seen = watch.look(/*thorough=*/true, /*may_be_open=*/true);
  if (!seen || *seen != ChangeWatch::Answer::unchanged || watch.was_touched() || is_being_written(file)) {
    if (auto removed = remove_at(at); !removed) return pass_on(removed.error());
    return give_up(still_written(data));
  }
  return manifest;
}

}  // namespace

bool stays_sealed(const Place& data, const Signature& signature) {
  return signature.archive || signature.tamperproof || has_manifest(data);
}

/// Example: `results.h5`, declared tamperproof, is sealed for the first time. No program writes it (2). It becomes
/// read-only (3), its SHA-256 goes into a manifest beside it (4), and both files become immutable (5). A second run
/// finds that the manifest fits, and only repeats 3 and 5.
///
/// 1. Read the manifest of an earlier run. Refuse tamperproof data that it does not fit.
/// 2. Refuse if a program writes the data.
/// 3. Protect tamperproof data from writing. Killed after it: read-only data without a manifest, which the next run
///    describes.
/// 4. Describe the data in a manifest: write_seal(). Killed after it: the next run does 5.
/// 5. Make both files immutable. It comes last, because immutable files can be neither replaced nor removed.
Result<Seal> seal(const Place& data, const JournalEntry& entry, bool dry_run, const CopyProgress& progress) {
  auto open = open_data(data);
  if (!open) return pass_on(open.error());
  const Fd& file = open->file;
  const Place at = manifest_of(data);
  auto found = known_manifest(at, *open, data, entry.path);
  if (!found) return pass_on(found.error());
  std::optional<Manifest>& known = *found;
  const Signature& signature = known ? known->signature : entry.signature;
  const bool is_fresh = known && fits(*known, open->status);
  if (!is_fresh && is_being_written(file)) return still_written(data);
  if (dry_run) return Seal{at.path(), known ? known->sha256 : "", closed_by(file)};
  if (signature.tamperproof)
    if (auto closed = make_read_only(*open, data); !closed) return pass_on(closed.error());
  if (!is_fresh) {
    auto written = write_seal(*open, data, at, {data.name, entry.path, signature, 0, 0, 0, {}}, progress);
    if (!written) return pass_on(written.error());
    known = *std::move(written);
  }
  if (signature.tamperproof) {
    make_immutable(file);
    make_immutable(open_own_to_read(at));
  }
  return Seal{at.path(), known->sha256, closed_by(file)};
}

Result<void> remove_manifest(const Place& data) { return remove_at(manifest_of(data)); }

Result<Verdict> verify_sealed(const Place& data, const std::string& copy_of_manifest, const CopyProgress& progress) {
  const auto at = copy_of_manifest.empty() ? Result<Place>(manifest_of(data)) : locate(AT_FDCWD, copy_of_manifest);
  if (!at) return pass_on(at.error());
  if (copy_of_manifest.empty() && !exists(*at))
    return fail(ErrorKind::bad_input,
                "'{}' has no manifest: only data declared tamperproof or archive get one, when they are finalized",
                printable(data.path()));
  auto manifest = read_manifest(*at);
  if (!manifest) return pass_on(manifest.error());
  const auto open = open_data(data);
  if (!open) return pass_on(open.error());
  Verdict verdict{*std::move(manifest), at->path(), static_cast<std::uint64_t>(open->status.st_size), "",
                  closed_by(open->file)};
  if (verdict.size_bytes != verdict.manifest.size_bytes) return verdict;
  const auto sha256 = sha256_of(*open, data, "verifying", progress);
  if (!sha256) return pass_on(sha256.error());
  verdict.sha256 = *sha256;
  return verdict;
}

}  // namespace iosig
