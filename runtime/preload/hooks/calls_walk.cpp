// The directory walks of libc: ftw(3), fts(3), glob(3). They use libc's internal calls, which cannot be intercepted,
// and so find each container as a directory. The functions here correct what they report: a container is a regular
// file, and what lies in it is not reported.

#include <fts.h>
#include <ftw.h>
#include <glob.h>

#include <string>
#include <utility>

#include "preload/hooks/hook.h"
#include "preload/hooks/real.h"
#include "preload/names/paths.h"

namespace iosig::preload {
namespace {

/// The walk of nftw() that the thread is in. nftw() passes nothing to its callback but the file. The callback may
/// throw, or be cancelled: then the thread's `walk` is left as it is, and is restored in an outer walk when that goes
/// on.
struct Walk {
  __nftw_func_t visit;
  int flags;
  __ftw_func_t visit_of_ftw = nullptr;  ///< the program's function for ftw(), which has fewer types
  int result = 0;                       ///< of the last call of `visit`
};
constinit thread_local Walk* walk __attribute__((tls_model("initial-exec"))) = nullptr;

/// Calls the program's function. Its result ends the walk unless it is 0, or the program asked for FTW_ACTIONRETVAL.
int call_visit(const char* path, const struct stat* status, int type, FTW* place) {
  Walk* const own = walk;
  own->result = own->visit(path, status, type, place);
  walk = own;
  return (own->flags & FTW_ACTIONRETVAL) != 0 || own->result == 0 ? own->result : FTW_STOP;
}

/// Whether nftw() has found the file in a container. The root of the walk is at level 0.
bool lies_in_container(std::string path, const FTW& place) {
  const bool is_in_parent = (walk->flags & FTW_CHDIR) != 0;  // then the working directory is the file's directory
  for (int above = 1; above <= place.level; ++above) {
    if (is_in_parent)
      path = above == 1 ? "." : above == 2 ? ".." : path.append("/..");
    else
      path.resize(path.find_last_not_of('/', path.rfind('/')) + 1);
    if (is_container_at(AT_FDCWD, path.c_str())) return true;
  }
  return false;
}

int visit_here(const char* path, const struct stat* status, int type, FTW* place) {
  if ((walk->flags & FTW_DEPTH) != 0 && lies_in_container(path, *place)) return 0;
  const char* const name = (walk->flags & FTW_CHDIR) != 0 ? path + place->base : path;
  const bool is_directory = type == FTW_D || type == FTW_DP || type == FTW_DNR;
  if (!is_directory || !is_container_at(AT_FDCWD, name)) return call_visit(path, status, type, place);
  struct stat of_file {};
  const int found = hook::fstatat(AT_FDCWD, name, &of_file, 0) == 0 ? FTW_F : FTW_NS;
  const int result = call_visit(path, &of_file, found, place);
  return result == 0 && type == FTW_D ? FTW_SKIP_SUBTREE : result;
}

/// The callback that nftw() gets. Without FTW_DEPTH nftw() reports a directory before what lies in it, and skips that
/// of a container when told so. With FTW_DEPTH it reports what lies in a container first, which is left out here.
int visit_as_program_sees(const char* path, const struct stat* status, int type, FTW* place) {
  // With FTW_CHDIR a directory is reported from within it, a file from its directory.
  const bool moves = (walk->flags & FTW_CHDIR) != 0 && type == FTW_DP && is_container_at(AT_FDCWD, ".");
  if (!moves) return visit_here(path, status, type, place);
  const int back = ::open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  (void)real().chdir("..");
  const int result = visit_here(path, status, type, place);
  if (back >= 0) {
    (void)::fchdir(back);
    ::close(back);
  }
  return result;
}

int walk_tree(const char* path, Walk now, int descriptors) {
  Walk* const outer = std::exchange(walk, &now);
  const int result = real().nftw(path, visit_as_program_sees, descriptors, now.flags | FTW_ACTIONRETVAL);
  walk = outer;
  return result == FTW_STOP ? now.result : result;
}

int visit_for_ftw(const char* path, const struct stat* status, int type, FTW* /*place*/) {
  return walk->visit_of_ftw(path, status, type == FTW_SLN ? FTW_NS : type);
}

/// Makes the container at `path` in a walk of fts a regular file. fts_read() descends only into entries of type FTS_D.
void show(FTSENT& entry, const char* path) {
  if (entry.fts_info != FTS_D || !is_container_at(AT_FDCWD, path)) return;
  if (entry.fts_statp == nullptr)
    entry.fts_info = FTS_NSOK;
  else
    entry.fts_info = hook::fstatat(AT_FDCWD, path, entry.fts_statp, 0) == 0 ? FTS_F : FTS_NS;
}

}  // namespace
}  // namespace iosig::preload

using namespace iosig::preload;

int hook::nftw(const char* path, __nftw_func_t visit, int descriptors, int flags) {
  return walk_tree(path, {.visit = visit, .flags = flags}, descriptors);
}
int hook::ftw(const char* path, __ftw_func_t visit, int descriptors) {
  return walk_tree(path, {.visit = visit_for_ftw, .flags = 0, .visit_of_ftw = visit}, descriptors);
}

FTSENT* hook::fts_read(FTS* tree) {
  FTSENT* const entry = real().fts_read(tree);
  if (entry != nullptr) show(*entry, entry->fts_accpath);
  return entry;
}
FTSENT* hook::fts_children(FTS* tree, int options) {
  FTSENT* const first = real().fts_children(tree, options);
  const FTSENT* const directory = tree->fts_cur;
  for (FTSENT* each = first; each != nullptr; each = each->fts_link)
    show(*each, each->fts_level == FTS_ROOTLEVEL
                    ? each->fts_accpath
                    : (std::string(directory->fts_accpath) + '/' + each->fts_name).c_str());
  return first;
}

int hook::glob(const char* pattern, int flags, int (*on_error)(const char*, int), glob_t* found) {
  if ((flags & GLOB_ALTDIRFUNC) != 0) return real().glob(pattern, flags, on_error, found);
  found->gl_opendir = [](const char* path) -> void* { return hook::opendir(path); };
  found->gl_readdir = [](void* directory) { return hook::readdir(static_cast<DIR*>(directory)); };
  found->gl_closedir = [](void* directory) { (void)hook::closedir(static_cast<DIR*>(directory)); };
  found->gl_stat = [](const char* path, struct stat* status) { return hook::fstatat(AT_FDCWD, path, status, 0); };
  found->gl_lstat = [](const char* path, struct stat* status) {
    return hook::fstatat(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
  };
  const int result = real().glob(pattern, flags | GLOB_ALTDIRFUNC, on_error, found);
  found->gl_flags &= ~GLOB_ALTDIRFUNC;
  return result;
}
