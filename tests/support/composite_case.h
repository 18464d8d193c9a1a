// A composite as data: tests/data/composites/*.case, each a mount on a machine with what its tools print, and what it
// must be found to be made of. For example
//
//     # ZFS: a mirror. Written after the examples of zpool-status(8), OpenZFS 2.1.
//     mount zfs tank/home /mnt/a
//     disk sda 1
//     disk sdb 1
//     $ zpool status -P -L tank
//       pool: tank
//     ...
//     errors: No known data errors
//     = raid1(sda,sdb)
//
// Lines, in any order but for the last:
//
//     # TEXT                             which composite it is, and where its data are from
//     mount TYPE SOURCE PATH [OPTIONS]   as in /proc/self/mountinfo
//     disk NAME [PARTITIONS]             a flash disk: sda, sda1, sda2, ... or nvme0n1, nvme0n1p1, ...
//     block NAME                         another block device
//     file PATH TEXT                     a file below /sys; {NAME} in the path: the directory of that block device
//     link PATH PATH                     a symbolic link below /sys
//     $ COMMAND                          a tool; what it prints follows, up to the next "$ " or "= " at a line's begin
//     = COMPOSITION                      as composition_text.h writes it: the device's name alone if it is simple
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/model/filesystem.h"
#include "iosig/storage/mountinfo.h"
#include "support/recorded_machine.h"

namespace iosig::test {

struct CompositeCase {
  explicit CompositeCase(const std::string& name) {
    const auto text = read_file(fmt::format("{}/composites/{}.case", IOSIG_TEST_DATA, name));
    REQUIRE_MESSAGE(text.has_value(), text.error().message);
    std::string* output = nullptr;
    for (const std::string_view line : split(*text, '\n')) {
      if (line.starts_with("$ ")) {
        output = &outputs[std::string(line.substr(2))];
      } else if (line.starts_with("= ")) {
        composition = line.substr(2);
        break;
      } else if (output != nullptr) {
        *output += fmt::format("{}\n", line);
      } else if (!line.empty() && line.front() != '#') {
        arrange(line);
      }
    }
    REQUIRE_MESSAGE(!composition.empty(), "expected '= COMPOSITION' at the end of ", name, ".case");
    REQUIRE_MESSAGE(!mount.filesystem.empty(), "expected 'mount TYPE SOURCE PATH' in ", name, ".case");
    for (const auto& [command, printed] : outputs) machine.says(command, printed);
    if (const std::string device = mount.source.substr(mount.source.rfind('/') + 1); machine.has(device)) {
      const FilesystemType* const type = find_filesystem(mount.filesystem);
      if (type != nullptr && type->is.has_no_device) return;
      mount.major = 8;
      mount.minor = static_cast<unsigned>(std::stoul(machine.number(device).substr(2)));
    }
  }

  Mount mount;
  RecordedMachine machine;
  std::map<std::string, std::string> outputs;  ///< of each command
  std::string composition;                     ///< what must be found

 private:
  void arrange(std::string_view line) {
    const auto words = words_of(line);
    const auto word = [&](std::size_t i) { return i < words.size() ? std::string(words[i]) : std::string(); };
    if (word(0) == "mount" && words.size() >= 4) {
      mount.filesystem = word(1);
      mount.source = word(2);
      mount.path = word(3);
      mount.options = words.size() > 4 ? word(4) : "rw";
    } else if (word(0) == "disk" && words.size() >= 2) {
      directories_[word(1)] = machine.disk(word(1), words.size() > 2 ? std::stoi(word(2)) : 0);
    } else if (word(0) == "block" && words.size() == 2) {
      directories_[word(1)] = machine.block(word(1));
    } else if (word(0) == "file" && words.size() >= 3) {
      const std::size_t begin = line.find(words[1]) + words[1].size();
      machine.put(path(word(1)), trimmed(line.substr(begin)));
    } else if (word(0) == "link" && words.size() == 3) {
      machine.link(path(word(1)), path(word(2)));
    } else {
      FAIL("expected a line as composite_case.h says, found: ", std::string(line));
    }
  }
  [[nodiscard]] std::string path(std::string text) const {
    for (const auto& [name, directory] : directories_)
      if (const std::size_t at = text.find("{" + name + "}"); at != std::string::npos)
        text.replace(at, name.size() + 2, directory.string());
    return text;
  }
  std::map<std::string, fs::path> directories_;
};

/// The names of all cases, in alphabetical order.
inline std::vector<std::string> composite_cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(IOSIG_TEST_DATA "/composites"))
    if (entry.path().extension() == ".case") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace iosig::test
