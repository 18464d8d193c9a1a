// A fact about a directory that was found out a moment ago, so a program that opens many files does not ask for it each
// time.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace iosig {

/// The directory that a fact is about, by its identity, and the path that the fact is about, too.
struct FactSubject {
  dev_t device = 0;
  ino_t inode = 0;
  std::string_view path;
  /// For a fact that depends on the mount: the path of the directory, which may be mounted twice with unlike options.
  std::string_view directory_path = {};
};

/// Remembers one fact for a tenth of a second. Only for this user (effective user id), this directory and this path: if
/// the name leads to another directory now, the fact is unknown. May be used from any thread and at any moment, also in
/// the child of a fork: it never waits, but says that nothing is known.
///
/// Only for what changes by an action of the user or of root: the answer may be a tenth of a second old.
class RecentFact {
 public:
  constexpr RecentFact() = default;
  [[nodiscard]] bool is_known(const FactSubject& subject);
  void keep(const FactSubject& subject);

 private:
  struct Path {
    std::size_t length = 0;
    std::array<char, 256> bytes{};  ///< longer ones are not remembered
    [[nodiscard]] bool has_room_for(std::string_view path) const { return path.size() <= bytes.size(); }
    void set(std::string_view path);
    [[nodiscard]] std::string_view view() const { return {bytes.data(), length}; }
  };

  std::mutex lock_;  ///< only tried
  std::int64_t found_ms_ = 0;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uid_t user_ = 0;
  Path path_;  ///< empty: nothing is known
  Path directory_path_;
};

}  // namespace iosig
