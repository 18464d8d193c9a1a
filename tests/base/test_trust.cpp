// Whom a path may be entrusted to. Ownership is tried out as root, who alone can give files away.
#include <doctest/doctest.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "iosig/base/trust.h"
#include "support/directories.h"

using namespace iosig;
namespace fs = std::filesystem;

namespace {

constexpr uid_t victim = 61001, untrusted = 61002;
constexpr gid_t project = 61003;

auto needs_root() { return doctest::skip(test::lacks("root, to own files as several users", ::geteuid() != 0)); }

void own(const std::string& path, uid_t user, gid_t group, mode_t mode) {
  REQUIRE(::lchown(path.c_str(), user, group) == 0);
  REQUIRE(::chmod(path.c_str(), mode) == 0);
}

/// What `ask` answers to an ordinary user who belongs to the group `project`.
template <class Ask>
bool as_victim(Ask ask) {
  const pid_t child = ::fork();
  if (child == 0) {
    const gid_t groups[] = {project};
    if (::setgroups(1, groups) != 0 || ::setgid(victim) != 0 || ::setuid(victim) != 0) ::_exit(2);
    ::_exit(ask() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) != 2);
  return WEXITSTATUS(status) == 0;
}

/// root/shared/mine, the first of them open to be passed through.
struct World {
  test::Directory root;
  std::string shared = root / "shared", mine = shared + "/mine";
  World() {
    fs::create_directories(mine);
    REQUIRE(::chmod(root.path().c_str(), 0755) == 0);
  }
  [[nodiscard]] bool victim_trusts(const std::string& path) const {
    return as_victim([&] { return check_directory(path).has_value(); });
  }
};

}  // namespace

TEST_CASE("trust: a directory that every user can write needs the sticky bit, wherever it is on the way") {
  const World world;
  CHECK(check_directory(world.mine));
  REQUIRE(::chmod(world.shared.c_str(), 0777) == 0);
  const auto refused = check_directory(world.mine);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::system);
  CHECK(refused.error().message.find("'" + world.shared + "'") != std::string::npos);
  CHECK(refused.error().message.find("chmod") != std::string::npos);
  CHECK_FALSE(check_directory(world.shared));
  REQUIRE(::chmod(world.shared.c_str(), 01777) == 0);
  CHECK(check_directory(world.mine));
  CHECK(check_directory(world.shared));
}

TEST_CASE("trust: a link is followed, and both the way to it and the way from it count") {
  const World world;
  fs::create_directory(world.root / "safe");
  fs::create_directory_symlink("../shared/mine", world.root / "safe/link");
  fs::create_directory_symlink("loop", world.root / "safe/loop");
  CHECK(check_directory(world.root / "safe/link"));
  CHECK(check_directory(world.root / "safe/link/../mine/./"));
  CHECK(check_directory(world.root / "safe/loop").error().message.find("symbolic links") != std::string::npos);
  REQUIRE(::chmod(world.shared.c_str(), 0777) == 0);
  CHECK_FALSE(check_directory(world.root / "safe/link"));
  CHECK(check_directory(world.root / "safe"));
  CHECK_FALSE(check_directory(world.root / "safe/link/../../safe"));  // by way of it
}

TEST_CASE("trust: what does not exist yet is as sound as the way to it") {
  const World world;
  CHECK(check_directory(world.mine + "/new/directory"));
  REQUIRE(::chmod(world.shared.c_str(), 0777) == 0);
  CHECK_FALSE(check_directory(world.shared + "/new/directory"));
}

TEST_CASE("trust: in a directory for everybody only one's own, root's and a project's directories count" *
          needs_root()) {
  const World world;
  own(world.shared, 0, 0, 01777);
  own(world.mine, victim, victim, 0755);
  CHECK(world.victim_trusts(world.mine));
  own(world.mine, 0, 0, 0755);
  CHECK(world.victim_trusts(world.mine));
  own(world.mine, untrusted, project, 02770);
  CHECK(world.victim_trusts(world.mine));
  own(world.mine, untrusted, project, 02777);
  CHECK_FALSE(world.victim_trusts(world.mine));
  own(world.mine, untrusted, untrusted, 0775);  // of a group that the victim is not in
  CHECK_FALSE(world.victim_trusts(world.mine));
  own(world.mine, untrusted, untrusted, 01777);
  CHECK_FALSE(world.victim_trusts(world.mine));
}

TEST_CASE("trust: outside such directories an ordinary user trusts owners and groups, root only root" * needs_root()) {
  const World world;
  own(world.shared, untrusted, project, 02775);  // a project's directory, led by somebody else
  CHECK(world.victim_trusts(world.mine));
  CHECK_FALSE(check_directory(world.mine));
  own(world.shared, 0, project, 02775);
  CHECK_FALSE(check_directory(world.mine));
  own(world.shared, 0, 0, 0755);
  CHECK(check_directory(world.mine));
  own(world.mine, untrusted, 0, 0755);
  CHECK_FALSE(check_directory(world.mine));
  own(world.shared, untrusted, 0, 01777);  // its owner may rename all that is in it
  own(world.mine, 0, 0, 0755);
  CHECK_FALSE(check_directory(world.mine));
}

TEST_CASE("trust: a configuration is read only if no untrusted user could have written it") {
  const World world;
  const std::string file = world.mine + "/storage.toml";
  test::write(file, "text");
  CHECK(*read_configuration(file, Configuration::found) == "text");
  REQUIRE(::chmod(file.c_str(), 0666) == 0);
  const auto refused = read_configuration(file, Configuration::found);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::bad_input);
  CHECK(refused.error().message.find("every user") != std::string::npos);
  REQUIRE(::chmod(file.c_str(), 0644) == 0);
  REQUIRE(::chmod(world.shared.c_str(), 0777) == 0);
  CHECK(read_configuration(file, Configuration::found).error().kind == ErrorKind::system);
}

TEST_CASE("trust: root may name another user's file, but not one that everybody can write" * needs_root()) {
  const World world;
  const std::string directory = world.mine + "/checkout", file = directory + "/storage.toml";
  std::filesystem::create_directory(directory);
  test::write(file, "text");
  own(directory, victim, victim, 0755);
  own(file, victim, victim, 0664);
  CHECK_FALSE(read_configuration(file, Configuration::found));
  CHECK(read_configuration(file, Configuration::named));
  own(file, victim, victim, 0666);
  CHECK_FALSE(read_configuration(file, Configuration::named));
}

TEST_CASE("trust: a configuration that somebody planted in a directory for everybody is not read" * needs_root()) {
  const World world;
  const std::string file = world.shared + "/storage.toml";
  test::write(file, "text");
  own(world.shared, 0, 0, 01777);
  const auto victim_reads = [&] {
    return as_victim([&] { return read_configuration(file, Configuration::found).has_value(); });
  };
  own(file, victim, victim, 0644);
  CHECK(victim_reads());
  CHECK_FALSE(read_configuration(file, Configuration::found));  // root trusts root alone
  own(file, 0, 0, 0644);
  CHECK(victim_reads());
  CHECK(read_configuration(file, Configuration::found));
  own(file, 0, 0, 0664);
  CHECK_FALSE(read_configuration(file, Configuration::found));
  CHECK(read_configuration(file, Configuration::named));
  own(file, untrusted, project, 0640);
  CHECK_FALSE(victim_reads());
}

TEST_CASE("trust: a configuration that never ends is given up early, and what is no file is not opened") {
  const World world;
  const std::string huge = world.mine + "/huge", pipe = world.mine + "/pipe";
  test::write(huge, "");
  REQUIRE(::truncate(huge.c_str(), off_t{1} << 40) == 0);  // a terabyte of nothing
  CHECK(read_configuration(huge, Configuration::found).error().message.find("larger than") != std::string::npos);
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_configuration(pipe, Configuration::found).error().message.find("not a regular file") != std::string::npos);
  CHECK(read_configuration(world.mine, Configuration::found).error().message.find("not a regular file") !=
        std::string::npos);
  CHECK(read_configuration("/dev/zero", Configuration::found).error().message.find("not a regular file") !=
        std::string::npos);
}
