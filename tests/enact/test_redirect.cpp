// The user's directory, the link, and what a survey makes of them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "iosig/enact/exchange.h"
#include "iosig/enact/redirect.h"
#include "iosig/enact/settle.h"
#include "iosig/enact/user_directory.h"
#include "support/directories.h"

using namespace iosig;
namespace fs = std::filesystem;

namespace {

MountPoint at(const std::string& path) {
  MountPoint mount;
  mount.path = path;
  return mount;
}

/// A working directory, a mount point and a journal, all on one file system: what is tested here needs no second one.
struct World {
  test::Directory root;
  std::string work = root / "work", mount = root / "mount";

  World() {
    ::setenv("IOSIG_STATE", (root / "state").c_str(), 1);
    fs::create_directory(work);
    fs::create_directory(mount);
  }
  ~World() { ::unsetenv("IOSIG_STATE"); }

  JournalEntry link(const std::string& name, const Signature& signature = {}) {
    auto place = locate(AT_FDCWD, work + "/" + name);
    REQUIRE(place);
    auto made = make_link(*place, at(mount), signature, RedirectedBy::prepare);
    REQUIRE(made);
    REQUIRE(*made);
    return **made;
  }
};

/// A world whose mount point is another file system, so that data come home by a copy.
struct TwoFileSystems : World {
  test::Directory other{"/dev/shm"};
  TwoFileSystems() { mount = other.path(); }
  static bool missing() {
    const test::Directory there("/dev/shm");
    return there.path().empty() || test::same_file_system(there.path(), fs::temp_directory_path());
  }
};

auto needs_two_file_systems() {
  return doctest::skip(
      test::lacks("/dev/shm on another file system than the directory for temporary files", TwoFileSystems::missing()));
}

}  // namespace

TEST_CASE("user directory: it is made once, for its owner alone") {
  const World world;
  const auto directory = open_user_directory(world.mount);
  REQUIRE(directory);
  CHECK(fs::status(directory->path).permissions() == fs::perms::owner_all);
  CHECK(open_user_directory(world.mount)->path == directory->path);
  CHECK_FALSE(open_user_directory(world.work, IfMissing::refuse));
  CHECK_FALSE(fs::exists(world.work + "/" + user_directory_name()));
}

TEST_CASE("user directory: a planted link, file or open directory is refused, with what to do") {
  const World world;
  const std::string planted = world.mount + "/" + user_directory_name();
  const auto refused = [&] {
    const auto directory = open_user_directory(world.mount);
    fs::remove_all(planted);
    return !directory && directory.error().kind == ErrorKind::system &&
           directory.error().message.find("have it removed") != std::string::npos;
  };
  fs::create_symlink(world.work, planted);
  CHECK(refused());
  test::write(planted, "");
  CHECK(refused());
  fs::create_directory(planted);
  fs::permissions(planted, fs::perms::owner_all | fs::perms::group_exec);
  CHECK(refused());
  if (::geteuid() == 0) {
    fs::create_directory(planted);
    fs::permissions(planted, fs::perms::owner_all);
    REQUIRE(::chown(planted.c_str(), 65534, 65534) == 0);
    CHECK(refused());
  }
}

TEST_CASE("user directory: a safe path counts for a moment, and for no directory in its place") {
  const World world;
  const std::string moved = world.root / "moved";
  const auto is_used = [&] { return open_user_directory(world.mount).has_value(); };
  CHECK(is_used());
  REQUIRE(::chmod(world.root.path().c_str(), 0777) == 0);
  fs::rename(world.mount, moved);
  fs::create_directory(world.mount);
  CHECK_FALSE(is_used());  // at once
  fs::remove(world.mount);
  fs::rename(moved, world.mount);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  CHECK_FALSE(is_used());
  REQUIRE(::chmod(world.root.path().c_str(), 0700) == 0);
  CHECK(is_used());
}

TEST_CASE("link: the journal knows it, and what is written through it lands on the mount point") {
  World world;
  const JournalEntry entry = world.link("out");
  CHECK(fs::read_symlink(world.work + "/out") == entry.destination);
  CHECK(entry.destination.starts_with(world.mount + "/" + user_directory_name() + "/" + entry.id + "/out"));
  CHECK(read_journal()->entries == std::vector{entry});
  CHECK(survey(entry).state == RedirectState::empty);
  test::write(world.work + "/out", "hello");
  CHECK(test::read(entry.destination) == "hello");
  CHECK(survey(entry).state == RedirectState::linked);
  CHECK(survey(entry).data_bytes == 5);
}

TEST_CASE("link: whoever comes second finds the first one's, and leaves no journal entry") {
  World world;
  const JournalEntry first = world.link("out");
  const auto second = make_link(*locate(AT_FDCWD, world.work + "/out"), at(world.mount), {}, RedirectedBy::runtime);
  REQUIRE(second);
  CHECK_FALSE(*second);
  CHECK(read_journal()->entries == std::vector{first});
}

TEST_CASE("link: the longest name that a directory takes still gets a destination") {
  World world;
  const std::string longest(255, 'n');
  const JournalEntry entry = world.link(longest);
  test::write(world.work + "/" + longest, "x");
  CHECK(fs::path(entry.destination).filename().string().size() == 255);
  CHECK(test::read(entry.destination) == "x");
}

TEST_CASE("link: a directory that moved under the program still gets the link") {
  const World world;
  const auto place = locate(AT_FDCWD, world.work + "/out");
  REQUIRE(place);
  fs::rename(world.work, world.root / "moved");
  REQUIRE(make_link(*place, at(world.mount), {}, RedirectedBy::runtime));
  CHECK(fs::is_symlink(world.root / "moved/out"));
}

TEST_CASE("survey: each thing that a program does to its file has a name") {
  World world;
  const JournalEntry entry = world.link("out");
  const std::string path = world.work + "/out";
  test::write(path, "data");

  fs::rename(path, world.work + "/renamed");
  CHECK(survey(entry).state == RedirectState::linked);
  CHECK(survey(entry).link->name == "renamed");

  test::write(path, "another file");
  CHECK(survey(entry).state == RedirectState::linked);  // the data have their link still
  fs::remove(world.work + "/renamed");
  CHECK(survey(entry).state == RedirectState::replaced);
  fs::remove(path);
  CHECK(survey(entry).state == RedirectState::orphan);
  fs::remove(entry.destination);
  CHECK(survey(entry).state == RedirectState::gone);
  const fs::path directory = fs::path(entry.destination).parent_path();
  fs::remove(directory);
  CHECK(survey(entry).state == RedirectState::gone);
  fs::remove(directory.parent_path());
  CHECK(survey(entry).state == RedirectState::unreachable);
}

TEST_CASE("survey: data that another machine put somewhere are out of reach, not gone") {
  World world;
  JournalEntry entry = world.link("out");
  entry.host = "another-machine";
  CHECK(survey(entry).state == RedirectState::unreachable);
  test::write(world.work + "/out", "");  // a shared mount point: the data are seen from here too
  CHECK(survey(entry).state == RedirectState::linked);
}

TEST_CASE("settle: on one file system the data are renamed, not copied") {
  World world;
  const JournalEntry entry = world.link("out");
  test::write(world.work + "/out", "data");
  struct stat before {
  }, after{};
  REQUIRE(::stat(entry.destination.c_str(), &before) == 0);
  const auto settled = settle(entry, {});
  REQUIRE(settled);
  CHECK(settled->action == Settlement::Action::brought_home);
  REQUIRE(::lstat((world.work + "/out").c_str(), &after) == 0);
  CHECK(after.st_ino == before.st_ino);
  CHECK(read_journal()->entries.empty());
}

TEST_CASE("settle: a path that another file took is refused, and either answer then completes") {
  World world;
  const JournalEntry entry = world.link("out");
  const std::string path = world.work + "/out";
  test::write(path, "redirected");
  fs::remove(path);
  test::write(path, "new");
  const auto refused = settle(entry, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::infeasible);
  CHECK(test::read(path) == "new");
  CHECK(test::read(entry.destination) == "redirected");
  SUBCASE("the new file is kept") { fs::remove(entry.destination); }
  SUBCASE("the redirected data are kept") { fs::rename(entry.destination, path); }
  const std::string kept = test::read(path);
  CHECK_FALSE(settle(entry, {}));  // the process that redirected it lives, and may be about to make its link
  SettleOptions options;
  options.force = true;
  REQUIRE(settle(entry, options));
  CHECK(test::read(path) == kept);
  CHECK(read_journal()->entries.empty());
}

TEST_CASE("settle: a run killed between putting the data home and taking them from their place is completed") {
  World world;
  const JournalEntry entry = world.link("out");
  const std::string path = world.work + "/out", draft = world.work + "/" + draft_name(entry),
                    displaced = world.work + "/" + displaced_name(entry);
  test::write(path, "data");
  fs::rename(path, displaced);  // the link, as the exchange leaves it
  test::write(path, "data");
  fs::create_hard_link(path, draft);
  SUBCASE("its names are there still") {}
  SUBCASE("its names are gone") {
    fs::remove(displaced);
    fs::remove(draft);
  }
  REQUIRE(settle(entry, {}));
  CHECK(test::read(path) == "data");
  CHECK_FALSE(fs::exists(fs::symlink_status(draft)));
  CHECK_FALSE(fs::exists(fs::symlink_status(displaced)));
  CHECK_FALSE(fs::exists(entry.destination));
  CHECK(read_journal()->entries.empty());
}

TEST_CASE("settle: when the data went with the power, a copy that was complete is put in place, a part is kept") {
  World world;
  const JournalEntry entry = world.link("out");
  const std::string path = world.work + "/out", draft = world.work + "/" + draft_name(entry);
  test::write(draft, "data");  // nothing is behind the link
  SettleOptions options;
  SUBCASE("complete: it had both names") {
    fs::create_hard_link(draft, world.work + "/" + displaced_name(entry));
    const auto settled = settle(entry, options);
    REQUIRE(settled);
    CHECK(settled->action == Settlement::Action::brought_home);
    CHECK(settled->data_bytes == 4);
    CHECK(test::read(path) == "data");
    CHECK_FALSE(fs::is_symlink(path));
  }
  SUBCASE("a part, until it is given up") {
    const auto refused = settle(entry, options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find(draft) != std::string::npos);
    CHECK(test::read(draft) == "data");
    options.drop_orphans = options.force = true;
    REQUIRE(settle(entry, options));
    CHECK_FALSE(fs::exists(fs::symlink_status(path)));
  }
  CHECK_FALSE(fs::exists(draft));
  CHECK_FALSE(fs::exists(fs::symlink_status(world.work + "/" + displaced_name(entry))));
  CHECK(read_journal()->entries.empty());
}

TEST_CASE("settle: a program that opens the data at the last moment keeps its link, and loses nothing" *
          needs_two_file_systems()) {
  TwoFileSystems world;
  const JournalEntry entry = world.link("out");
  const std::string path = world.work + "/out";
  test::write(path, "data");
  Fd late;
  SettleOptions options;
  SUBCASE("after each piece is verified") { options.copy.verify = Verify::copy; }
  SUBCASE("while all is verified") { options.copy.verify = Verify::full; }
  options.copy.progress = [&](const char*, std::uint64_t, std::uint64_t) {
    late = Fd(::open(path.c_str(), O_WRONLY | O_APPEND));
  };
  const auto refused = settle(entry, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("just opened") != std::string::npos);
  REQUIRE(::write(late.get(), "+more", 5) == 5);
  late = Fd();
  CHECK(fs::read_symlink(path) == entry.destination);
  REQUIRE(settle(entry, {}));
  CHECK(test::read(path) == "data+more");
  CHECK_FALSE(fs::is_symlink(path));
  CHECK_FALSE(fs::exists(world.work + "/" + draft_name(entry)));
}

TEST_CASE("settle: what a program puts in the link's place at the last moment stays there" * needs_two_file_systems()) {
  TwoFileSystems world;
  const JournalEntry entry = world.link("out");
  const std::string path = world.work + "/out";
  test::write(path, "data");
  SettleOptions options;
  SUBCASE("after each piece is verified") { options.copy.verify = Verify::copy; }
  SUBCASE("while all is verified") { options.copy.verify = Verify::full; }
  options.copy.progress = [&](const char*, std::uint64_t, std::uint64_t) {
    fs::remove(path);
    test::write(path, "new");
  };
  REQUIRE_FALSE(settle(entry, options));
  CHECK(test::read(path) == "new");
  CHECK(test::read(entry.destination) == "data");
  CHECK_FALSE(fs::exists(world.work + "/" + draft_name(entry)));
}

TEST_CASE("settle: a file system that is not mounted now is no file that was never written") {
  World world;
  JournalEntry entry = world.link("out");
  entry.filesystem_id ^= 1;  // the same directory, on another file system
  CHECK(survey(entry).state == RedirectState::unreachable);
  REQUIRE_FALSE(settle(entry, {}));
  CHECK(fs::is_symlink(world.work + "/out"));
  CHECK(read_journal()->entries.size() == 1);
}

TEST_CASE("copy: content, holes, mode and times are those of the source") {
  const test::Directory directory;
  const std::string source = directory / "source", target = directory / "target";
  const Fd from(::open(source.c_str(), O_RDWR | O_CREAT, 0640));
  REQUIRE(::pwrite(from.get(), "begin", 5, 0) == 5);
  REQUIRE(::pwrite(from.get(), "end", 3, 64 << 20) == 3);
  REQUIRE(::ftruncate(from.get(), (64 << 20) + 8192) == 0);  // ends in a hole
  const timespec times[2] = {{1'000'000, 0}, {1'234'567, 890}};
  REQUIRE(::futimens(from.get(), times) == 0);
  const Fd to(::open(target.c_str(), O_RDWR | O_CREAT, 0600));
  REQUIRE(copy_content(from.get(), to.get(), {}));
  REQUIRE(copy_attributes(from.get(), to.get()));
  CHECK(*same_content(from.get(), to.get(), {}));
  struct stat status {};
  REQUIRE(::fstat(to.get(), &status) == 0);
  CHECK(status.st_size == (64 << 20) + 8192);
  CHECK(status.st_blocks * 512 < 1 << 20);
  CHECK((status.st_mode & 07777) == 0640);
  CHECK(status.st_mtim.tv_sec == 1'234'567);
  CHECK(status.st_mtim.tv_nsec == 890);
  REQUIRE(::pwrite(to.get(), "E", 1, 64 << 20) == 1);
  CHECK_FALSE(*same_content(from.get(), to.get(), {}));
}

TEST_CASE(
    "copy: a file that comes home into a set-gid directory has that directory's group, as if it had been made there" *
    doctest::skip(test::lacks("root", ::geteuid() != 0))) {
  const test::Directory directory;
  const std::string shared = directory / "shared";
  fs::create_directory(shared);
  REQUIRE(::chown(shared.c_str(), 0, 65534) == 0);
  REQUIRE(::chmod(shared.c_str(), 02775) == 0);
  const Fd from(::open((directory / "source").c_str(), O_RDWR | O_CREAT, 0640));
  const Fd to(::open((shared + "/target").c_str(), O_RDWR | O_CREAT, 0600));
  struct stat status {};
  REQUIRE(copy_attributes(from.get(), to.get()));
  REQUIRE(::fstat(to.get(), &status) == 0);
  CHECK(status.st_gid == 65534);
  REQUIRE(::fchown(from.get(), 0, 12345) == 0);  // the program chose a group
  REQUIRE(copy_attributes(from.get(), to.get()));
  REQUIRE(::fstat(to.get(), &status) == 0);
  CHECK(status.st_gid == 12345);
}

TEST_CASE("copy: a piece that is not as it was written is noticed, also while a second thread flushes") {
  const test::Directory directory;
  const Fd from(::open((directory / "source").c_str(), O_RDWR | O_CREAT, 0600));
  const off_t at = 40 << 20;  // far enough for flushes on the way; a hole before it
  REQUIRE(::pwrite(from.get(), "data", 4, at) == 4);
  REQUIRE(::pwrite(from.get(), "end", 3, 2 * at) == 3);
  for (const bool in_two_threads : {false, true}) {
    CAPTURE(in_two_threads);
    CopyOptions options;
    options.in_two_threads = in_two_threads;
    const Fd right(::open((directory / "right").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
    CHECK(copy_content(from.get(), right.get(), options));
    CHECK(*same_content(from.get(), right.get(), {}));
    // A write to a file with O_APPEND goes to its end, and the place that it was meant for keeps its zeros.
    const Fd wrong(::open((directory / "wrong").c_str(), O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600));
    const auto copied = copy_content(from.get(), wrong.get(), options);
    REQUIRE_FALSE(copied);
    CHECK(copied.error().kind == ErrorKind::system);
    CHECK(copied.error().message.starts_with(fmt::format("bytes {} to ", at)));
    CHECK(copied.error().message.find("not as they were written") != std::string::npos);
  }
}

TEST_CASE("copy: files that are mostly holes are compared in a moment, and a difference within a hole is seen") {
  const test::Directory directory;
  const Fd a(::open((directory / "a").c_str(), O_RDWR | O_CREAT, 0600));
  const Fd b(::open((directory / "b").c_str(), O_RDWR | O_CREAT, 0600));
  for (const Fd* file : {&a, &b}) REQUIRE(::ftruncate(file->get(), off_t{1} << 40) == 0);
  CHECK(*same_content(a.get(), b.get(), {}));              // a terabyte
  REQUIRE(::pwrite(a.get(), "", 1, off_t{1} << 39) == 1);  // a zero that is stored is the same as a hole
  CHECK(*same_content(a.get(), b.get(), {}));
  REQUIRE(::pwrite(b.get(), "x", 1, (off_t{1} << 39) + (1 << 20)) == 1);
  CHECK_FALSE(*same_content(a.get(), b.get(), {}));
}
