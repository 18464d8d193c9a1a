#include "iosig/container/admin/flatten.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

#include "iosig/base/kept_fds.h"
#include "iosig/base/text.h"
#include "iosig/container/admin/container.h"
#include "iosig/container/admin/names.h"
#include "iosig/container/admin/removal.h"
#include "iosig/container/layout/tail.h"

namespace iosig {
namespace {

constexpr std::int64_t piece_bytes = 1 << 20;
constexpr std::int64_t min_hole = 4096;  ///< shorter holes are written as zeros: file systems allocate whole blocks

/// The pieces of a view. With `damaged`, bytes that are missing in their dropping count as holes.
class Source {
 public:
  Source(ContainerView& view, bool damaged) : view_(view), damaged_(damaged) {
    if (damaged) view.ignore_damage();
  }

  /// Returns the end of the hole at `offset`, or `offset` itself if there is no hole.
  std::int64_t end_of_hole(std::int64_t offset) {
    while (offset < view_.size()) {
      const Piece piece = piece_at(offset);
      const bool is_lost = !piece.is_hole && is_missing(piece);
      if (!piece.is_hole && !is_lost) return offset;
      if (is_lost) lost_bytes_ += piece.length;
      offset += piece.length;
    }
    return offset;
  }

  /// Returns how many bytes from `offset` on to write at once: up to the next hole of at least min_hole bytes, but at
  /// most `most`.
  [[nodiscard]] std::int64_t batch_at(std::int64_t offset, std::int64_t most) const {
    std::int64_t end = offset;
    while (end < view_.size() && end - offset < most) {
      const Piece piece = piece_at(end);
      if (piece.is_hole ? piece.length >= min_hole : is_missing(piece)) break;
      end = std::min(offset + most, piece.length + end);
    }
    return end - offset;
  }

  ContainerView& view() { return view_; }
  [[nodiscard]] std::int64_t lost_bytes() const { return lost_bytes_; }

 private:
  /// Returns the piece at `offset`, shortened to the bytes that exist in its dropping, unless all of them are missing.
  [[nodiscard]] Piece piece_at(std::int64_t offset) const {
    Piece piece = view_.piece_at(offset);
    piece.length = std::min(piece.length, view_.size() - offset);
    if (const std::int64_t there = bytes_there(piece); there > 0) piece.length = there;
    return piece;
  }
  [[nodiscard]] bool is_missing(const Piece& piece) const { return bytes_there(piece) == 0; }
  [[nodiscard]] std::int64_t bytes_there(const Piece& piece) const {
    const bool is_sure = !damaged_ || piece.is_hole;
    return is_sure ? piece.length : view_.content().bytes_there(piece.id, piece.physical, piece.length);
  }

  ContainerView& view_;
  bool damaged_;
  std::int64_t lost_bytes_ = 0;
};

Result<void> copy_all(Source& source, int fd, const std::string& shown, const FlattenOptions& options) {
  std::vector<std::byte> buffer(piece_bytes);
  ContainerView& view = source.view();
  for (std::int64_t at = source.end_of_hole(0); at < view.size(); at = source.end_of_hole(at)) {
    const auto got = view.read(at, std::span(buffer).first(static_cast<std::size_t>(source.batch_at(at, piece_bytes))));
    if (!got) return pass_on(got.error());
    for (std::int64_t done = 0; done < *got;) {
      const ssize_t put = ::pwrite(fd, buffer.data() + done, static_cast<std::size_t>(*got - done), at + done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return write_failure("write", shown, errno);
      done += put;
    }
    at += *got;
    if (options.on_progress) options.on_progress(at);
  }
  if (::ftruncate(fd, view.size()) != 0 || ::fsync(fd) != 0) return write_failure("write", shown, errno);
  return {};
}

/// Fails if data do not match their checksums. The copy compares only blocks that it reads whole.
Result<void> refuse_if_changed(const ContainerView& view, const FlattenOptions& options) {
  const auto check = check_data(view.directory(), view.content(), options.on_verified);
  if (!check) return pass_on(check.error());
  if (check->changed.empty()) return {};
  return fail(ErrorKind::bad_input, "{}; iosig container export --damaged writes them as they are",
              message_of(check->changed.front(), view.directory()));
}

/// Copies owner, extended attributes and times of a container to the file that replaces it, as far as the caller may
/// set them, and stores them.
Result<void> keep_attributes(const ContainerDirectory& directory, const struct stat& manifest, const Fd& file,
                             const std::string& shown) {
  const int fd = file.get();
  struct stat made {};
  const bool is_owners = ::fstat(fd, &made) == 0 && made.st_uid == manifest.st_uid && made.st_gid == manifest.st_gid;
  if (!is_owners && ::fchown(fd, manifest.st_uid, manifest.st_gid) == 0) (void)!::fchmod(fd, manifest.st_mode & 07777);
  const ssize_t length = ::flistxattr(directory.fd().get(), nullptr, 0);
  std::string names(static_cast<std::size_t>(std::max<ssize_t>(0, length)), '\0');
  names.resize(
      static_cast<std::size_t>(std::max<ssize_t>(0, ::flistxattr(directory.fd().get(), names.data(), names.size()))));
  for (std::size_t at = 0; at < names.size(); at += std::strlen(names.c_str() + at) + 1) {
    const char* const name = names.c_str() + at;
    if (std::string_view(name).starts_with("system.posix_acl_")) continue;  // the ACL of the container's directory
    std::string value(XATTR_SIZE_MAX, '\0');
    const ssize_t size = ::fgetxattr(directory.fd().get(), name, value.data(), value.size());
    if (size >= 0) (void)::fsetxattr(fd, name, value.data(), static_cast<std::size_t>(size), 0);
  }
  if (const auto status = status_of(directory)) {
    const auto time_of = [](std::int64_t unix_ns) {
      return timespec{unix_ns / 1'000'000'000, unix_ns % 1'000'000'000};
    };
    const timespec times[2] = {time_of(status->accessed_unix_ns), time_of(status->modified_unix_ns)};
    (void)::futimens(fd, times);
  }
  if (::fsync(fd) != 0) return write_failure("write", shown, errno);
  return {};
}

/// The destination of the file: in place of the container, or at a free name.
enum class Place { of_container, free_name };

/// Writes a complete file with the view's bytes beside `path`. Returns its temporary name.
Result<std::string> make_flat(Source& source, const std::string& path, Place place, const FlattenOptions& options,
                              const std::function<Result<void>(int)>& on_draft = {}) {
  std::string draft = name_beside(path, place == Place::of_container ? "flat" : "export", "XXXXXX");
  const Fd fd(::mkostemp(draft.data(), O_CLOEXEC));
  if (!fd) return write_failure("make a file beside", path, errno);
  auto copied = on_draft ? on_draft(fd.get()) : Result<void>();
  if (copied) copied = copy_all(source, fd.get(), draft, options);
  // The manifest bears the permissions of the logical file, including the creator's umask and later changes by chmod.
  struct stat manifest {};
  const std::string name(container_manifest_name);
  if (copied && (::fstatat(source.view().directory().fd().get(), name.c_str(), &manifest, AT_SYMLINK_NOFOLLOW) != 0 ||
                 ::fchmod(fd.get(), manifest.st_mode & (place == Place::of_container ? 07777 : 0777)) != 0))
    copied = system_failure("make", draft);
  if (copied && place == Place::of_container) copied = keep_attributes(source.view().directory(), manifest, fd, draft);
  if (copied) return draft;
  ::unlink(draft.c_str());
  return pass_on(std::move(copied.error()));
}

/// Fails with `infeasible`, naming the first active writer, if there is one.
Result<void> refuse_if_written(const ContainerDirectory& directory) {
  const ContainerDirectory::Listing listing = directory.list();
  if (listing.misses_indices) return pass_on(listing.unreadable.front());  // and tails
  for (const std::int64_t id : listing.tail) {
    const Fd tail = directory.open_dropping(Dropping::tail, id, O_RDWR);
    if (!tail && errno != ENOENT) return system_failure("open", directory.shown(Dropping::tail, id));
    if (tail && is_alive(tail))
      return fail(ErrorKind::infeasible,
                  "'{}' is being written, by the owner of '{}'; try again when the program has ended",
                  printable(directory.path()), directory.shown(Dropping::tail, id));
  }
  return {};
}

/// Releases the caller's own holds of the container while it lives.
class NotHeld {
 public:
  NotHeld() = default;
  NotHeld(const NotHeld&) = delete;
  NotHeld& operator=(const NotHeld&) = delete;
  ~NotHeld() {
    try {
      for (const int fd : held_) (void)hold_container(fd);
    } catch (const std::bad_alloc&) {  // thrown after the lock was acquired
    }
  }
  void begin(const std::vector<int>& held) {
    held_ = held;
    for (const int fd : held_) (void)::flock(fd, LOCK_UN);
  }
  /// Called after the container was replaced: there is nothing to hold again.
  void forget() { held_.clear(); }

 private:
  std::vector<int> held_;
};

/// Acquires the exclusive lock on `alone`. Fails with `infeasible` if another process holds the container or has
/// written to it since it was listed (`before`).
Result<void> refuse_if_in_use(const ContainerDirectory& directory, const Fd& alone,
                              const ContainerDirectory::Listing& before) {
  struct stat opened {
  }, there{};
  const bool is_it = alone && ::fstat(alone.get(), &there) == 0 && ::fstat(directory.fd().get(), &opened) == 0 &&
                     there.st_dev == opened.st_dev && there.st_ino == opened.st_ino;
  if (!is_it || ::flock(alone.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorKind::infeasible, "'{}' is open in a program; try again when the program has ended",
                printable(directory.path()));
  const ContainerDirectory::Listing now = directory.list();
  if (now.index != before.index || now.data != before.data || now.has_quarantine != before.has_quarantine)
    return fail(ErrorKind::infeasible, "'{}' was written meanwhile; try again", printable(directory.path()));
  return refuse_if_written(directory);
}

/// Step 1 of flatten_container(): **what the file would lack is lost for good once the container is deleted.**
Result<void> refuse_if_bytes_go(const ContainerView& view, const ContainerDirectory::Listing& listing,
                                const std::string& path) {
  for (const ContainerProblem& problem : view.problems())
    if (problem.kind == ContainerProblem::Kind::lost || problem.kind == ContainerProblem::Kind::foreign)
      return fail(ErrorKind::bad_input,
                  "{}; {}: iosig container export --damaged writes the bytes that are left into another file",
                  problem.message,
                  problem.kind == ContainerProblem::Kind::lost
                      ? "its lost bytes cannot be recovered once the container is removed"
                      : "it would be removed with the container");
  if (listing.has_quarantine)
    return fail(
        ErrorKind::infeasible,
        "'{}' holds files that repair quarantined ({}...), which would be removed with it: move them elsewhere, or "
        "remove it",
        printable(path), quarantine_prefix);
  return {};
}

/// Step 4 of flatten_container(). `alone`: the container, locked exclusively. On failure removes the draft, unless the
/// exchange has given its name to the container.
Result<void> put_in_place(const std::string& draft, const std::string& path, const Fd& alone) {
  const auto replaced = replace_at({AT_FDCWD, draft}, {AT_FDCWD, path}, alone);
  if (replaced) return {};
  if (!is_container(draft)) ::unlink(draft.c_str());
  if (replaced.error().number == ESTALE)
    return fail(ErrorKind::infeasible, "'{}' was renamed or replaced meanwhile; try again", printable(path));
  return as_error(replaced.error(), "replace", path);
}

}  // namespace

Result<std::int64_t> export_container(ContainerView& view, const std::string& path, const FlattenOptions& options) {
  struct stat status {};
  const auto exists = [&] { return fail(ErrorKind::usage, "'{}' exists already", printable(path)); };
  if (::lstat(path.c_str(), &status) == 0) return exists();
  if (!options.damaged && !view.content().lost_writes.empty())
    return fail(ErrorKind::bad_input, "{}; --damaged writes the bytes that are left",
                view.content().lost_writes.front().message);
  if (options.dry_run) return 0;
  if (!options.damaged)
    if (auto same = refuse_if_changed(view, options); !same) return pass_on(std::move(same.error()));
  Source source(view, options.damaged);
  // The draft has no hidden name of IOSIG's, because `path` may be in a mount, which refuses those.
  const auto draft = make_flat(source, path, Place::free_name, options);
  if (!draft) return pass_on(draft.error());
  // link() fails if the name exists; rename() would replace the file.
  const bool is_there = ::link(draft->c_str(), path.c_str()) == 0;
  const int failure = errno;
  ::unlink(draft->c_str());
  if (!is_there && failure == EEXIST) return exists();
  if (!is_there) return system_failure("make", path, failure);
  return source.lost_bytes();
}

/// Example: `out.h5` is a container of 4 GB. Its bytes go into the new hidden file `.out.h5.iosig-flat-XXXXXX` (2).
/// Nothing has the container open (3), so the two names are exchanged, and the container is deleted (4).
///
/// 1. Refuse a container that is written, whose deletion would lose bytes, or whose data do not match their checksums.
/// 2. Copy into a hidden file. Killed after it: the container as it was, and the hidden file.
/// 3. Lock the container exclusively: no program opens it, and no writer begins. Then look once more whether any has
///    written since 1.
/// 4. Exchange the names and delete the container. Killed in between: the file is at `path`, and the container under a
///    hidden name.
Result<std::int64_t> flatten_container(const std::string& path, const FlattenOptions& options,
                                       const FlattenOwnUse& own) {
  const std::string plain(without_trailing_slashes(path));
  struct stat status {};
  if (::lstat(plain.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    return fail(ErrorKind::usage, "'{}' is a symbolic link: give its target", printable(plain));
  const auto directory = ContainerDirectory::open(plain);
  if (!directory) return pass_on(directory.error());
  const ContainerDirectory::Listing before = (*directory)->list();
  if (auto quiet = refuse_if_written(**directory); !quiet) return pass_on(std::move(quiet.error()));
  auto view = ContainerView::open(*directory, ContainerView::Source::droppings);
  if (!view) return pass_on(std::move(view.error()));
  if (auto whole = refuse_if_bytes_go(**view, before, plain); !whole) return pass_on(std::move(whole.error()));
  if (options.dry_run) return (*view)->size();
  if (auto same = refuse_if_changed(**view, options); !same) return pass_on(std::move(same.error()));
  Source source(**view, false);
  const auto draft = make_flat(source, plain, Place::of_container, options, own.on_draft);
  if (!draft) return pass_on(draft.error());
  NotHeld own_descriptors;  // declared first: it acquires the holds again after `alone` has released its lock
  // The exclusive lock keeps other processes from opening the container or a writer (ContainerWriter::open).
  const Fd alone = open_file_at(AT_FDCWD, plain.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  own_descriptors.begin(own.held);
  auto quiet = refuse_if_in_use(**directory, alone, before);
  if (quiet && own.before_exchange) quiet = own.before_exchange();
  if (!quiet) {
    ::unlink(draft->c_str());
    return pass_on(std::move(quiet.error()));
  }
  if (auto replaced = put_in_place(*draft, plain, alone); !replaced) return pass_on(std::move(replaced.error()));
  own_descriptors.forget();
  return (*view)->size();
}

}  // namespace iosig
