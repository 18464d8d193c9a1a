#include "iosig/replay/target_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "iosig/base/text.h"

namespace iosig {
namespace {

constexpr const char* mark_name = ".iosig-replay";
constexpr std::size_t max_mark = 4096;
constexpr std::string_view made_word = "made ", taken_word = "taken ";  ///< before the mark's text: the directory was
constexpr std::size_t max_component = 255, kept_of_long_component = 200;
constexpr std::size_t max_opened = 256;
constexpr int max_open_tries = 100;
constexpr int most_naps = 100, nap_us = 1000;
constexpr int walk_flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr mode_t file_mode = 0600, directory_mode = 0700;

int result_or_errno(int returned) { return returned < 0 ? -errno : returned; }

std::string_view parent_of(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : name.substr(0, slash);
}

}  // namespace

std::string contained_name(std::string_view path) {
  std::vector<std::string> kept;
  for (const std::string_view component : split(path, '/')) {
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      if (!kept.empty()) kept.pop_back();
    } else if (component.size() <= max_component) {
      kept.emplace_back(component);
    } else {
      kept.push_back(fmt::format("{}~{:016x}", cut_to(component, kept_of_long_component), fnv1a(component)));
    }
  }
  std::string name;
  for (const std::string& component : kept) name += (name.empty() ? "" : "/") + component;
  return name;
}

Result<TargetTree> TargetTree::make(const std::string& path, std::size_t most_files) {
  const bool is_made = ::mkdir(path.c_str(), directory_mode) == 0;
  if (!is_made && errno != EEXIST) return write_failure("make", path, errno);
  auto tree = open(path, most_files);
  if (!tree) return tree;
  tree->is_made_ = is_made;
  const auto names = names_in(tree->root_);
  if (!names) return pass_on(names.error());
  if (!names->empty())
    return fail(ErrorKind::usage, "'{}' is not empty: it has '{}'; name a new directory", printable(path),
                printable(names->front()));
  return tree;
}

Result<TargetTree> TargetTree::open(const std::string& path, std::size_t most_files) {
  TargetTree tree;
  tree.path_ = path;
  tree.root_ = Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!tree.root_) return system_failure("open", path);
  tree.made_ = std::make_shared<MadeFiles>(most_files);
  if (!tree.made_->is_made()) return system_failure("share memory among", "processes");
  return tree;
}

Result<TargetTree> TargetTree::again() const {
  TargetTree tree;
  tree.path_ = path_;
  tree.root_ = Fd(::openat(root_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!tree.root_) return system_failure("open", path_);
  tree.made_ = made_;
  return tree;
}

Result<std::optional<TargetTree>> TargetTree::open_marked(const std::string& path, std::string_view text,
                                                          std::size_t most_files) {
  struct stat at {};
  if (::lstat(path.c_str(), &at) != 0 && errno == ENOENT) return std::nullopt;
  auto tree = open(path, most_files);
  if (!tree) return pass_on(std::move(tree.error()));
  if (::fstatat(tree->root_.get(), mark_name, &at, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  const auto mark = read_file_in(tree->root_, mark_name, path + "/" + mark_name, max_mark);
  if (!mark) return pass_on(mark.error());
  tree->is_made_ = mark->starts_with(made_word);
  if (*mark != fmt::format("{}{}", tree->is_made_ ? made_word : taken_word, text))
    return fail(ErrorKind::usage, "'{}' was prepared for another trace, or with other --files, --all or --verify",
                printable(path));
  if (::unlinkat(tree->root_.get(), mark_name, 0) != 0) return system_failure("delete", path + "/" + mark_name);
  return std::optional(*std::move(tree));
}

Result<void> TargetTree::save_mark(std::string_view text) {
  const std::string shown = path_ + "/" + mark_name;
  const Fd mark(::openat(root_.get(), mark_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, file_mode));
  if (!mark) return write_failure("make", shown, errno);
  return write_all(mark.get(), fmt::format("{}{}", is_made_ ? made_word : taken_word, text), shown);
}

int TargetTree::find(const std::string& name, Place& place) {
  if (name.empty()) return -EINVAL;
  const std::string_view parent = parent_of(name);
  place.name = name.substr(parent.empty() ? 0 : parent.size() + 1);
  place.directory = root_.get();
  if (parent.empty()) return 0;
  if (const std::uint64_t generation = made_->generation(); generation != generation_) {
    opened_.clear();
    generation_ = generation;
  }
  if (const auto known = opened_.find(parent); known != opened_.end()) {
    place.directory = known->second.get();
    return 0;
  }
  Fd at;
  for (const std::string_view component : split(parent, '/')) {
    const std::string next(component);
    Fd opened(::openat(at ? at.get() : root_.get(), next.c_str(), walk_flags));
    if (!opened) return -errno;
    at = std::move(opened);
  }
  if (opened_.size() >= max_opened) opened_.clear();
  place.directory = opened_.insert_or_assign(std::string(parent), std::move(at)).first->second.get();
  return 0;
}

bool TargetTree::adopt(const std::string& name, std::int64_t size) {
  Place place;
  struct stat file {};
  return find(name, place) == 0 && ::fstatat(place.directory, place.name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(file.st_mode) && file.st_nlink == 1 && file.st_size == size && file.st_uid == ::geteuid() &&
         made_->add(file);
}

int TargetTree::refusal_of(const struct stat& file) const {
  if (S_ISLNK(file.st_mode)) return -ELOOP;
  if (!S_ISREG(file.st_mode)) return -EMLINK;
  // Another process of the replay may have made it just now, and not have added it yet.
  for (int naps = 0; !made_->has(file); ++naps) {
    if (file.st_nlink != 1 || file.st_uid != ::geteuid() || naps == most_naps) return -EMLINK;
    ::usleep(nap_us);
  }
  return 0;
}

int TargetTree::inspect(const Place& place, struct stat& file) const {
  if (::fstatat(place.directory, place.name.c_str(), &file, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
  return S_ISDIR(file.st_mode) ? 0 : refusal_of(file);
}

int TargetTree::open_file(const std::string& name, int flags) {
  Place place;
  if (const int failed = find(name, place); failed != 0) return failed;
  const auto attempt = [&](int with) {  // a FIFO would make the open wait
    return Fd(::openat(place.directory, place.name.c_str(), with | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, file_mode));
  };
  const bool may_make = (flags & O_CREAT) != 0, must_make = may_make && (flags & O_EXCL) != 0;
  struct stat file {};
  // Whether a file is the replay's own is known before it is emptied. Other processes may make and delete it meanwhile.
  for (int tries = 0; tries < max_open_tries; ++tries) {
    if (!must_make) {
      Fd found = attempt(flags & ~(O_CREAT | O_TRUNC));
      if (!found && (errno != ENOENT || !may_make)) return -errno;
      if (found) {
        if (::fstat(found.get(), &file) != 0) return -errno;
        if (const int refused = refusal_of(file); refused != 0) return refused;
        if ((flags & O_TRUNC) != 0 && (flags & O_ACCMODE) != O_RDONLY && ::ftruncate(found.get(), 0) != 0)
          return -errno;
        return found.release();
      }
    }
    Fd made = attempt((flags & ~O_TRUNC) | O_CREAT | O_EXCL);
    if (made) {
      if (::fstat(made.get(), &file) != 0) return -errno;
      return made_->add(file) ? made.release() : -ENOMEM;
    }
    if (errno != EEXIST || must_make) return -errno;
  }
  return -EEXIST;
}

int TargetTree::make_directory(const std::string& name) {
  Place place;
  if (const int failed = find(name, place); failed != 0) return failed;
  return result_or_errno(::mkdirat(place.directory, place.name.c_str(), directory_mode));
}

int TargetTree::remove(const Place& place) {
  struct stat file {};
  if (const int refused = inspect(place, file); refused != 0) return refused;
  const int removed = result_or_errno(::unlinkat(place.directory, place.name.c_str(), 0));
  if (removed == 0 && file.st_nlink <= 1) made_->forget(file);
  return removed;
}

int TargetTree::remove_file(const std::string& name) {
  Place place;
  const int failed = find(name, place);
  return failed != 0 ? failed : remove(place);
}

int TargetTree::remove_directory(const std::string& name) {
  Place place;
  if (const int failed = find(name, place); failed != 0) return failed;
  const int removed = result_or_errno(::unlinkat(place.directory, place.name.c_str(), AT_REMOVEDIR));
  if (removed == 0) made_->begin_generation();
  return removed;
}

int TargetTree::rename(const std::string& from, const std::string& to) {
  Place source;
  if (const int failed = find(from, source); failed != 0) return failed;
  const Fd directory(::fcntl(source.directory, F_DUPFD_CLOEXEC, 0));  // the next find() may forget it
  Place target;
  if (const int failed = find(to, target); failed != 0) return failed;
  struct stat file {};
  source.directory = directory.get();
  if (const int refused = inspect(source, file); refused != 0) return refused;
  struct stat replaced {};
  if (const int refused = inspect(target, replaced); refused != 0 && refused != -ENOENT) return refused;
  const int renamed =
      result_or_errno(::renameat(directory.get(), source.name.c_str(), target.directory, target.name.c_str()));
  if (S_ISDIR(file.st_mode)) made_->begin_generation();
  if (renamed == 0 && replaced.st_ino != 0 && replaced.st_ino != file.st_ino && replaced.st_nlink <= 1)
    made_->forget(replaced);
  return renamed;
}

int TargetTree::link(const std::string& from, const std::string& to) {
  Place source;
  if (const int failed = find(from, source); failed != 0) return failed;
  const Fd directory(::fcntl(source.directory, F_DUPFD_CLOEXEC, 0));
  Place target;
  if (const int failed = find(to, target); failed != 0) return failed;
  struct stat file {};
  source.directory = directory.get();
  if (const int refused = inspect(source, file); refused != 0) return refused;
  return result_or_errno(::linkat(directory.get(), source.name.c_str(), target.directory, target.name.c_str(), 0));
}

int TargetTree::truncate(const std::string& name, std::int64_t size) {
  const Fd file(open_file(name, O_WRONLY));
  return file ? result_or_errno(::ftruncate(file.get(), size)) : file.get();
}

int TargetTree::make_parents(const std::string& name) {
  for (std::size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1))
    if (const int made = make_directory(name.substr(0, slash)); made != 0 && made != -EEXIST) return made;
  return 0;
}

bool TargetTree::remove_all(std::span<const std::string> files, std::span<const std::string> directories) {
  bool is_gone = true;
  for (const std::string& name : files)
    if (const int removed = remove_file(name); removed != 0 && removed != -ENOENT && removed != -ENOTDIR)
      is_gone = false;
  std::vector<std::string> deepest_first(directories.begin(), directories.end());
  std::ranges::sort(deepest_first, std::greater<>());  // a directory comes after what is below it
  for (const std::string& name : deepest_first)
    if (const int removed = remove_directory(name); removed != 0 && removed != -ENOENT && removed != -ENOTDIR)
      is_gone = false;
  struct stat at {
  }, root{};
  if (!is_made_) return is_gone;
  const bool is_there = ::lstat(path_.c_str(), &at) == 0 && ::fstat(root_.get(), &root) == 0 &&
                        at.st_dev == root.st_dev && at.st_ino == root.st_ino;
  return is_there && ::rmdir(path_.c_str()) == 0 && is_gone;
}

}  // namespace iosig
