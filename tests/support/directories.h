// Directories for tests that need real file systems, each removed with all it holds; and how to skip what a machine
// cannot run.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace iosig::test {

class Directory {
 public:
  explicit Directory(const std::string& below = std::filesystem::temp_directory_path()) {
    std::string name = below + "/iosig-test.XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  /// Empty: no directory could be made there.
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// A directory in memory if this machine has one: for tests that store durably many times.
inline std::string fast_directory() {
  return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path().string();
}

inline void write(const std::string& path, const std::string& content) { std::ofstream(path) << content; }

inline std::string read(const std::string& path) {
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

inline bool same_file_system(const std::string& a, const std::string& b) {
  struct stat status_a {
  }, status_b{};
  return ::stat(a.c_str(), &status_a) == 0 && ::stat(b.c_str(), &status_b) == 0 && status_a.st_dev == status_b.st_dev;
}

/// For doctest::skip. Says why, since doctest only counts what it skips; tools/run_tests repeats it at the end.
inline bool lacks(const std::string& needed, bool is_missing) {
  if (is_missing) std::cout << "skipped: a test that needs " << needed << '\n';
  return is_missing;
}

}  // namespace iosig::test
