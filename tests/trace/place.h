// A directory for the parts of a test, and what can be read there.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "iosig/trace/trace.h"

namespace iosig::trace::test {

/// An empty directory.
struct Place {
  std::string path = [] {
    std::string made = std::filesystem::temp_directory_path() / "iosig-trace-XXXXXX";
    REQUIRE(::mkdtemp(made.data()) != nullptr);
    return made;
  }();
  Fd directory{::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

  Place() = default;
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() { std::filesystem::remove_all(path); }

  void put(const std::string& name, std::span<const std::byte> bytes) const {
    const Fd file(::open((path + "/" + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    REQUIRE(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  [[nodiscard]] Result<std::optional<Part>> read(const std::string& name) const {
    return read_part(directory, name, name);
  }
  /// The calls that can be read, by id.
  [[nodiscard]] std::map<std::uint64_t, Slot> calls_of(const Part& part) const {
    std::map<std::uint64_t, Slot> found;
    for (const BlockPlace& block : part.blocks) {
      const auto read = read_block(directory, part, block, part.name);
      REQUIRE(read);
      for (const PartCall& each : *read) {
        const bool is_new = found.emplace(each.id, each.slot).second;
        REQUIRE(is_new);
      }
    }
    for (const PartCall& each : part.loose) {
      const bool is_new = found.emplace(each.id, each.slot).second;
      REQUIRE(is_new);
    }
    return found;
  }
};

/// All accesses, in the order of their starts.
inline std::vector<Access> all_of(const Trace& trace, const Selection& selection = {}) {
  std::vector<Access> found;
  std::vector<Error> faults;
  REQUIRE(
      trace.for_each([&](const Access& access) { return found.push_back(access), Result<void>{}; }, selection, faults));
  REQUIRE(faults.empty());
  return found;
}
}  // namespace iosig::trace::test
