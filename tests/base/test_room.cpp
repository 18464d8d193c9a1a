// How much memory a job may still fill: the machine's, and that of each of its control groups.
#include <doctest/doctest.h>
#include <unistd.h>

#include "iosig/base/page_cache.h"
#include "iosig/base/room.h"
#include "iosig/base/units.h"
#include "support/directories.h"

using namespace iosig;

namespace {

/// The files of /proc and /sys of a machine.
struct Recorded {
  test::Directory root;

  explicit Recorded(const std::string& groups, const std::string& total = "1000000",
                    const std::string& available = "800000") {
    put("proc/meminfo", "MemTotal:       " + total + " kB\nMemFree:  1 kB\nMemAvailable:   " + available + " kB\n");
    put("proc/self/cgroup", groups);
  }
  void put(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root / path).parent_path());
    test::write(root / path, text);
  }
  void put_group_2(const std::string& group, const std::string& limit, std::uint64_t used,
                   std::uint64_t file_pages = 0) const {
    put("sys/fs/cgroup/" + group + "memory.max", limit + "\n");
    put("sys/fs/cgroup/" + group + "memory.current", std::to_string(used) + "\n");
    put("sys/fs/cgroup/" + group + "memory.stat",
        "anon 5\nfile 77\nshmem 70\ninactive_file " + std::to_string(file_pages) + "\nactive_file 0\n");
  }
  [[nodiscard]] std::uint64_t room() const { return memory_room_bytes(root.path()).value(); }
};

constexpr std::uint64_t machine_room = (800'000 - 100'000) * KiB;

}  // namespace

TEST_CASE("memory room: without control groups, what the machine has available less a tenth of its memory") {
  CHECK(Recorded("").room() == machine_room);
  CHECK(Recorded("0::/\n").room() == machine_room);
  CHECK(Recorded("", "1000000", "99999").room() == 0);
  const std::uint64_t TiB_in_KiB = TiB / KiB;
  CHECK(Recorded("", std::to_string(TiB_in_KiB), std::to_string(TiB_in_KiB)).room() == TiB - kept_free_bytes);
}

TEST_CASE("memory room: the limit of a group, less what is used, less a tenth; cached pages of files can be dropped") {
  const Recorded machine("0::/job\n");
  machine.put_group_2("job/", "100000000", 50'000'000);
  CHECK(machine.room() == 40'000'000);
  machine.put_group_2("job/", "100000000", 50'000'000, 20'000'000);
  CHECK(machine.room() == 60'000'000);
  machine.put_group_2("job/", "100000000", 95'000'000);
  CHECK(machine.room() == 0);
  machine.put_group_2("job/", "100000000", 195'000'000);  // a limit that was lowered
  CHECK(machine.room() == 0);
  machine.put_group_2("job/", "max", 50'000'000);
  CHECK(machine.room() == machine_room);
  machine.put("sys/fs/cgroup/job/memory.high", "60000000\n");
  CHECK(machine.room() == 4'000'000);
}

TEST_CASE("memory room: the groups above a process's own limit it too, also where only those can be seen") {
  const Recorded machine("0::/slurm/job_7/step_0\n");
  machine.put_group_2("slurm/job_7/step_0/", "max", 0);
  machine.put_group_2("slurm/", "100000000", 30'000'000);
  CHECK(machine.room() == 60'000'000);
  machine.put_group_2("", "10000000", 0);  // a container shows its own group as the uppermost
  CHECK(machine.room() == 9'000'000);
}

TEST_CASE("memory room: version 1, with the memory controller among others") {
  const Recorded machine("9:name=systemd:/a\n4:cpu,memory:/job\n0::/\n");
  const std::string group = "sys/fs/cgroup/memory/job/";
  machine.put(group + "memory.limit_in_bytes", "100000000\n");
  machine.put(group + "memory.usage_in_bytes", "60000000\n");
  machine.put(group + "memory.stat", "inactive_file 1\ntotal_inactive_file 4000000\ntotal_active_file 1000000\n");
  CHECK(machine.room() == 35'000'000);
  machine.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // no limit
  machine.put("sys/fs/cgroup/memory/memory.usage_in_bytes", "70000000\n");
  CHECK(machine.room() == 35'000'000);
}

TEST_CASE("memory room: lines and files of another form are left out") {
  for (const char* const groups : {"0::\n", "0:/job", ":::", "4:memory", "0::job\n", "0::/../../job\n"})
    CHECK(Recorded(groups).room() == machine_room);
  const Recorded machine("0::/job\n");
  machine.put("sys/fs/cgroup/job/memory.max", "-7\n");
  CHECK(machine.room() == machine_room);
  const test::Directory empty;
  CHECK_FALSE(memory_room_bytes(empty.path()).has_value());
}

TEST_CASE("memory room: on this machine, at most its memory") {
  const auto memory_bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  CHECK(memory_room_bytes().value() < memory_bytes);
}

TEST_CASE("page cache: its thresholds are shares of the memory that the process can have, or fixed numbers") {
  const Recorded machine("0::/\n");
  CHECK(ask_page_cache(machine.root.path()).cached_bytes == machine_room);
  CHECK_FALSE(ask_page_cache(machine.root.path()).unthrottled_bytes.has_value());
  for (const auto& [name, value] :
       {std::pair{"ratio", "20\n"}, {"bytes", "0\n"}, {"background_ratio", "10\n"}, {"background_bytes", "0\n"}})
    machine.put(std::string("proc/sys/vm/dirty_") + name, value);
  CHECK(ask_page_cache(machine.root.path()).background_bytes == machine_room / 100 * 10);
  CHECK(ask_page_cache(machine.root.path()).unthrottled_bytes == machine_room / 100 * 15);
  machine.put("proc/sys/vm/dirty_bytes", "1000000\n");
  machine.put("proc/sys/vm/dirty_background_bytes", "400000\n");
  CHECK(ask_page_cache(machine.root.path()).unthrottled_bytes == 700'000);
  machine.put("proc/sys/vm/dirty_background_bytes", "2000000\n");  // not below the limit: the kernel takes half of it
  CHECK(ask_page_cache(machine.root.path()).background_bytes == 500'000);
}
