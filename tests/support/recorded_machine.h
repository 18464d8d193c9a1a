// Another machine, as discovery sees it: a sysfs of its own, removed at the end, and what its tools print.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "iosig/storage/machine.h"
#include "support/directories.h"

namespace iosig::test {

namespace fs = std::filesystem;

class RecordedMachine {
 public:
  RecordedMachine() {
    for (const char* directory : {"dev/block", "class/block", "fs/btrfs"}) fs::create_directories(root_ / directory);
  }
  void put(const fs::path& file, std::string_view text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << '\n';
  }
  void link(const fs::path& name, const fs::path& to) const {
    fs::create_directories((root_ / name).parent_path());
    fs::create_directory_symlink(root_ / to, root_ / name);
  }
  /// A block device as big as 1000 sectors; returns its directory, relative to sysfs.
  fs::path block(const std::string& name, const fs::path& below = "devices/virtual/block") {
    const fs::path directory = below / name;
    const std::string number = fmt::format("8:{}", count_++);
    put(directory / "dev", number);
    put(directory / "size", "1000");
    link(fs::path("dev/block") / number, directory);
    link(fs::path("class/block") / name, directory);
    numbers_[name] = number;
    return directory;
  }
  /// A flash disk with as many partitions: sda, sda1, sda2, ... or nvme0n1, nvme0n1p1, ...
  fs::path disk(const std::string& name, int partitions = 0) {
    fs::path directory = block(name, "devices/pci0/ata1/host0/block");
    put(directory / "queue/rotational", "0");
    for (int i = 1; i <= partitions; ++i)
      put(block(fmt::format("{}{}{}", name, std::isdigit(name.back()) ? "p" : "", i), directory) / "partition",
          fmt::format("{}", i));
    return directory;
  }
  /// md over the block devices `members`.
  fs::path md(const std::string& name, std::string_view level, const std::vector<std::string>& members) {
    fs::path directory = block(name);
    put(directory / "md/level", level);
    put(directory / "md/raid_disks", fmt::format("{}", members.size()));
    put(directory / "md/degraded", "0");
    for (std::size_t i = 0; i < members.size(); ++i) {
      const fs::path slot = directory / fmt::format("md/dev-{}", members[i]);
      put(slot / "state", "in_sync");
      link(slot / "block", fs::path("class/block") / members[i]);
      link(directory / fmt::format("md/rd{}", i), slot);
    }
    return directory;
  }
  /// Device-mapper's `name` with that table, whose "{sda}" become numbers, and status.
  fs::path mapped(const std::string& name, const std::string& mapped_name, std::string table,
                  const std::string& status = "") {
    fs::path directory = block(name);
    put(directory / "dm/name", mapped_name);
    for (const auto& [device, number] : numbers_)
      for (std::size_t at; (at = table.find("{" + device + "}")) != std::string::npos;)
        table.replace(at, device.size() + 2, number);
    const std::string words = fmt::format("-j 8 -m {}", numbers_[name].substr(2));
    says("dmsetup table " + words, table);
    if (!status.empty()) says("dmsetup status " + words, status);
    return directory;
  }
  void says(const std::string& command, const std::string& output) { outputs_[command] = output; }
  [[nodiscard]] bool has(const std::string& name) const { return numbers_.contains(name); }
  [[nodiscard]] const std::string& number(const std::string& name) const { return numbers_.at(name); }
  [[nodiscard]] const fs::path& sysfs() const { return root_; }

  /// This machine; tools that have nothing recorded are not installed.
  [[nodiscard]] Machine machine() const {
    return {root_.string(), [this](const Command& command) -> Result<std::string> {
              const auto output = outputs_.find(fmt::format("{}", fmt::join(command, " ")));
              if (output == outputs_.end()) return fail(ErrorKind::system, "{} is not installed", command.front());
              return output->second;
            }};
  }

 private:
  Directory temporary_;
  fs::path root_ = temporary_.path();
  int count_ = 0;
  std::map<std::string, std::string> numbers_, outputs_;
};

}  // namespace iosig::test
