#include "iosig/store/flatten.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "iosig/base/text.h"
#include "iosig/store/container.h"
#include "iosig/store/tail.h"

namespace iosig {
namespace {

constexpr std::int64_t piece_bytes = 1 << 20;
constexpr std::int64_t least_hole = 4096;  ///< shorter ones are written: file systems keep whole blocks

/// Where the hole that holds `offset` ends, or `offset` itself when there is none.
std::int64_t end_of_hole(const ContainerView& view, std::int64_t offset) {
  while (offset < view.size()) {
    const Piece piece = view.piece_at(offset);
    if (!piece.is_hole) return offset;
    offset = std::min(view.size(), piece.logical + piece.length);
  }
  return offset;
}

/// How many bytes from `offset` on are worth writing at once: up to a hole that takes room, at most `most`.
std::int64_t stretch_at(const ContainerView& view, std::int64_t offset, std::int64_t most) {
  std::int64_t end = offset;
  while (end < view.size() && end - offset < most) {
    const Piece piece = view.piece_at(end);
    if (piece.is_hole && piece.length >= least_hole) break;
    end = std::min(offset + most, std::min(view.size() - end, piece.length) + end);
  }
  return end - offset;
}

Result<void> copy_all(ContainerView& view, int fd, const std::string& shown, const FlattenOptions& options) {
  std::vector<std::byte> buffer(piece_bytes);
  for (std::int64_t at = end_of_hole(view, 0); at < view.size(); at = end_of_hole(view, at)) {
    const auto got =
        view.read(at, std::span(buffer).first(static_cast<std::size_t>(stretch_at(view, at, piece_bytes))));
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

/// A complete file with the view's bytes beside `path`: its name.
Result<std::string> make_flat(ContainerView& view, const std::string& path, const FlattenOptions& options) {
  std::string draft = name_beside(path, "flat", "XXXXXX");
  const Fd fd(::mkostemp(draft.data(), O_CLOEXEC));
  if (!fd) return write_failure("make a file beside", path, errno);
  auto copied = copy_all(view, fd.get(), draft, options);
  // The manifest bears the permissions of the logical file, with the umask of its maker and what chmod made of them.
  struct stat manifest {};
  const std::string name(container_manifest_name);
  if (copied && (::fstatat(view.folder().fd().get(), name.c_str(), &manifest, AT_SYMLINK_NOFOLLOW) != 0 ||
                 ::fchmod(fd.get(), manifest.st_mode & 0777) != 0))
    copied = system_failure("make", draft);
  if (copied) return draft;
  ::unlink(draft.c_str());
  return pass_on(std::move(copied.error()));
}

/// The first writer that is at work.
Result<void> refuse_if_written(const ContainerFolder& folder) {
  for (const std::int64_t id : folder.list().tail) {
    const Fd tail = folder.open_dropping(Dropping::tail, id, O_RDWR);
    if (tail && is_alive(tail))
      return fail(ErrorKind::infeasible, "'{}' is being written, by the owner of '{}'; do it when that has ended",
                  printable(folder.path()), folder.shown(Dropping::tail, id));
  }
  return {};
}

}  // namespace

Result<void> export_container(ContainerView& view, const std::string& path, const FlattenOptions& options) {
  struct stat status {};
  const auto exists = [&] { return fail(ErrorKind::usage, "'{}' exists already", printable(path)); };
  if (::lstat(path.c_str(), &status) == 0) return exists();
  if (options.dry_run) return {};
  const auto draft = make_flat(view, path, options);
  if (!draft) return pass_on(draft.error());
  // Unlike rename(), link() replaces nothing.
  const bool is_there = ::link(draft->c_str(), path.c_str()) == 0;
  const int failure = errno;
  ::unlink(draft->c_str());
  if (!is_there && failure == EEXIST) return exists();
  if (!is_there) return system_failure("make", path, failure);
  return {};
}

Result<std::int64_t> flatten_container(const std::string& path, const FlattenOptions& options) {
  const std::string plain(without_trailing_slashes(path));
  const auto folder = ContainerFolder::open(plain);
  if (!folder) return pass_on(folder.error());
  if (auto quiet = refuse_if_written(**folder); !quiet) return pass_on(std::move(quiet.error()));
  auto view = ContainerView::open(*folder, ContainerView::Source::droppings);
  if (!view) return pass_on(std::move(view.error()));
  for (const ContainerProblem& problem : (*view)->problems())
    if (problem.kind == ContainerProblem::Kind::lost)
      return fail(ErrorKind::bad_input, "{}; what is there can be kept by iosig container repair", problem.message);
  if (options.dry_run) return (*view)->size();
  const auto draft = make_flat(**view, plain, options);
  if (!draft) return pass_on(draft.error());
  if (auto quiet = refuse_if_written(**folder); !quiet) {
    ::unlink(draft->c_str());
    return pass_on(std::move(quiet.error()));
  }
  if (::renameat2(AT_FDCWD, draft->c_str(), AT_FDCWD, plain.c_str(), RENAME_EXCHANGE) != 0) {
    const int failure = errno;
    ::unlink(draft->c_str());
    return system_failure("replace", plain, failure);
  }
  if (auto removed = remove_container(*draft); !removed) return pass_on(std::move(removed.error()));
  return (*view)->size();
}

}  // namespace iosig
