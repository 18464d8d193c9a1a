// Running other people's tools: bounded in time and output, without a shell, and never needed.
#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "iosig/base/text.h"
#include "iosig/storage/machine.h"
#include "support/directories.h"

using namespace iosig;
using namespace std::chrono_literals;

TEST_CASE("machine: a tool's output comes back whole, in the plain locale, with nothing of this environment") {
  ::setenv("IOSIG_TEST_SECRET", "seen", 1);
  const auto output = run_tool({"env"});
  REQUIRE(output.has_value());
  CHECK(output->find("LC_ALL=C\n") != std::string::npos);
  CHECK(output->find("IOSIG_TEST_SECRET") == std::string::npos);
  CHECK(*run_tool({"printf", "%s", "a b; $(c)"}) == "a b; $(c)");
}

TEST_CASE("machine: a tool that is missing, fails or is elsewhere on $PATH gives nothing") {
  CHECK(run_tool({"iosig-no-such-tool"}).error().message.find("is not installed") != std::string::npos);
  CHECK_FALSE(run_tool({"false"}).has_value());
  CHECK_FALSE(run_tool({"../bin/true/"}).has_value());
  const test::Directory directory;
  test::write(directory / "iosig-planted", "#!/bin/sh\necho planted\n");
  std::filesystem::permissions(directory / "iosig-planted", std::filesystem::perms::owner_all);
  const std::string before = ::getenv("PATH");
  ::setenv("PATH", directory.path().c_str(), 1);
  CHECK_FALSE(run_tool({"iosig-planted"}).has_value());
  ::setenv("PATH", before.c_str(), 1);
}

TEST_CASE("machine: a tool that hangs or prints without end is killed, and what it has started too") {
  CHECK_FALSE(run_tool({"yes"}).has_value());
  const test::Directory directory;
  // The shell's child keeps the output open: only its end would end the wait.
  const std::string script = "sleep 1000 & echo $! > " + directory / "pid" + "; wait";
  CHECK_FALSE(run_tool({"sh", "-c", script}).has_value());
  const std::string child(trimmed(test::read(directory / "pid")));
  REQUIRE_FALSE(child.empty());
  const std::string command = "/proc/" + child + "/cmdline";  // empty once it has ended
  for (int i = 0; i < 1000 && !test::read(command).empty(); ++i) std::this_thread::sleep_for(1ms);
  CHECK(test::read(command).empty());
}

TEST_CASE("machine: a tool whose status nobody can tell, for SIGCHLD is ignored, has failed") {
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  CHECK_FALSE(run_tool({"false"}).has_value());
  std::signal(SIGCHLD, before);
  CHECK(run_tool({"true"}).has_value());
}
