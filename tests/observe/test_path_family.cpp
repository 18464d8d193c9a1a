#include <doctest/doctest.h>
#include <fnmatch.h>

#include <algorithm>

#include "iosig/observe/path_family.h"

using namespace iosig::observe;

namespace {

/// The globs, in their order; each path is checked to be matched first by that of its own family.
std::vector<std::string> globs_of(const std::vector<PathUse>& paths) {
  const std::vector<PathFamily> families = families_of(paths);
  std::vector<std::string> globs;
  std::vector<std::size_t> seen;
  for (const PathFamily& family : families) {
    globs.push_back(family.glob);
    for (const std::size_t member : family.members) {
      seen.push_back(member);
      const auto first = std::ranges::find_if(families, [&](const PathFamily& each) {
        return ::fnmatch(each.glob.c_str(), paths[member].path.c_str(), FNM_PATHNAME) == 0;
      });
      REQUIRE(first != families.end());
      CHECK(first->glob == family.glob);
    }
  }
  std::ranges::sort(seen);
  CHECK(seen.size() == paths.size());
  CHECK(std::ranges::adjacent_find(seen) == seen.end());
  return globs;
}

using Globs = std::vector<std::string>;

std::string letters(int count) {
  std::string glob;
  for (int n = 0; n < count; ++n) glob += "[A-Za-z0-9_]";
  return glob;
}

}  // namespace

TEST_CASE("a number that varies becomes a wildcard, one that does not stays") {
  CHECK(globs_of({{.path = "/out2/step0001.h5"}, {.path = "/out2/step0002.h5"}, {.path = "/out2/mesh3.h5"}}) ==
        Globs{"/out2/mesh3.h5", "/out2/step[0-9][0-9][0-9][0-9].h5"});
  CHECK(globs_of({{.path = "/out1/r7"}, {.path = "/out2/r7"}}) == Globs{"/out[0-9]*/r7"});
}

TEST_CASE("files that are written and files that are only read are never one family") {
  const std::vector<PathUse> paths{{.path = "/in1", .kind = 0},
                                   {.path = "/in2", .kind = 0},
                                   {.path = "/in3", .kind = 0},
                                   {.path = "/in4", .kind = 1},
                                   {.path = "/in5", .kind = 1}};
  CHECK(globs_of(paths) == Globs{"/in4", "/in5", "/in[0-9]*"});
}

TEST_CASE("ids of processes and jobs, and the date of the run, are open; other numbers are not") {
  // 2026-11-26 23:30:00 UTC is the 27th an hour further east.
  const RunNumbers run{.words = {"4711"}, .started_s = 1795735800, .ended_s = 1795735860, .seconds_east = 3600};
  CHECK(globs_of({{.path = "/log.4711", .run = &run}}) == Globs{"/log.[0-9]*"});
  CHECK(globs_of({{.path = "/log.4712", .run = &run}}) == Globs{"/log.4712"});
  CHECK(globs_of({{.path = "/2026-11-27/a", .run = &run}}) == Globs{"/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]/a"});
  CHECK(globs_of({{.path = "/2026-11-25/a", .run = &run}}) == Globs{"/2026-11-25/a"});
  CHECK(globs_of({{.path = "/run_20261127_003012.log", .run = &run}}) ==
        Globs{"/run_[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]_[0-9][0-9][0-9][0-9][0-9][0-9].log"});
  CHECK(globs_of({{.path = "/T00:30:12", .run = &run}}) == Globs{"/T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]"});
  CHECK(globs_of({{.path = "/2026-11-27T00:31", .run = &run}}) ==
        Globs{"/[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]"});
  CHECK(globs_of({{.path = "/T12:30:12", .run = &run}}) == Globs{"/T12:30:12"});
  CHECK(globs_of({{.path = "/run_123456.log", .run = &run}}) == Globs{"/run_123456.log"});
  CHECK(globs_of({{.path = "/t1795735801", .run = &run}}) ==
        Globs{"/t[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]"});
}

TEST_CASE("names with random letters are one family, whatever numbers and directories of hashes are around them") {
  // As rsync names what it copies; two of these do not look random.
  CHECK(globs_of({{.path = "/dst/1/.f1.00ccQG", .may_be_random = true},
                  {.path = "/dst/1/.f10.RoNa7h", .may_be_random = true},
                  {.path = "/dst/2/.f3.lemsds", .may_be_random = true}}) ==
        Globs{"/dst/[0-9]*/.f[0-9]*." + letters(6)});
  // As git names objects that it writes.
  CHECK(globs_of({{.path = "/objects/01/tmp_obj_aB3xYz", .may_be_random = true},
                  {.path = "/objects/a7/tmp_obj_QeGDRJ", .may_be_random = true},
                  {.path = "/objects/ff/tmp_obj_b7Cq9e", .may_be_random = true}}) ==
        Globs{"/objects/[0-9a-f][0-9a-f]/tmp_obj_" + letters(6)});
  CHECK(globs_of({{.path = "/objects/a7/tmp_obj_aB3xYz", .may_be_random = true}}) ==
        Globs{"/objects/a7/tmp_obj_" + letters(6)});
  // Directories that are no hashes, and other words, keep their families apart.
  CHECK(globs_of({{.path = "/in/tmp_obj_aB3xYz", .may_be_random = true},
                  {.path = "/to/tmp_obj_b7Cq9e", .may_be_random = true}}) ==
        Globs{"/in/tmp_obj_" + letters(6), "/to/tmp_obj_" + letters(6)});
}

TEST_CASE("random letters are open where open(2) had O_EXCL") {
  CHECK(globs_of({{.path = "/scratch.aB3xYz", .may_be_random = true},
                  {.path = "/scratch.Qw9rTz", .may_be_random = true}}) == Globs{"/scratch." + letters(6)});
  CHECK(globs_of({{.path = "/tmpab3d_9xk", .may_be_random = true}}) == Globs{"/tmp" + letters(8)});
  CHECK(globs_of({{.path = "/ccaB3xYz.s", .may_be_random = true}}) == Globs{"/cc" + letters(6) + ".s"});
  CHECK(globs_of({{.path = "/tmp.BqGe3xYzAb", .may_be_random = true}}) == Globs{"/tmp." + letters(10)});
  // One that does not look random belongs to the others.
  CHECK(globs_of({{.path = "/sed.lemsds", .may_be_random = true}, {.path = "/sed.aB3xYz", .may_be_random = true}}) ==
        Globs{"/sed." + letters(6)});
  CHECK(globs_of({{.path = "/sed.lemsds", .may_be_random = true}}) == Globs{"/sed.lemsds"});
  CHECK(globs_of({{.path = "/Mesh02.h5", .may_be_random = true}, {.path = "/part01.h5", .may_be_random = true}}) ==
        Globs{"/Mesh02.h5", "/part01.h5"});
  CHECK(globs_of({{.path = "/scratch.aB3xYz"}}) == Globs{"/scratch.aB3xYz"});
  // What git checks out has O_EXCL, too, and words in names are often joined by an underscore.
  CHECK(globs_of({{.path = "/repro/doe_fig6.py", .may_be_random = true}}) == Globs{"/repro/doe_fig6.py"});
  CHECK(globs_of({{.path = "/s3d_hdf5.c", .may_be_random = true}}) == Globs{"/s3d_hdf5.c"});
  CHECK(globs_of({{.path = "/results", .may_be_random = true}, {.path = "/output", .may_be_random = true}}) ==
        Globs{"/output", "/results"});
}

TEST_CASE("characters that mean something in a glob are escaped") {
  CHECK(globs_of({{.path = "/a[1]*?\\b"}}) == Globs{"/a\\[1]\\*\\?\\\\b"});
  CHECK(globs_of({{.path = "/a[1]"}, {.path = "/a[2]"}}) == Globs{"/a\\[[0-9]*]"});
}
