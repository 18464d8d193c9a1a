#include "external.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace iosig::cli {
namespace {

bool names_a_verb(std::string_view word) {
  return !word.empty() && word.front() != '-' &&
         std::ranges::all_of(word, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

std::filesystem::path own_program() {
  std::error_code none;
  return std::filesystem::read_symlink("/proc/self/exe", none);
}

}  // namespace

std::string python_package_missing(std::string_view verb) {
  return fmt::format(
      "'{}' comes with the Python package iosig, and there is no iosig-{} beside this command or "
      "in $PATH; in a checkout: make python",
      verb, verb);
}

std::string external_verb(std::string_view verb) {
  if (!names_a_verb(verb)) return {};
  std::vector<std::string> directories{own_program().parent_path()};
  const char* path = std::getenv("PATH");
  for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    directories.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const std::string& directory : directories) {
    if (!directory.starts_with('/')) continue;  // the program must not depend on the working directory
    std::string program = directory + "/iosig-" + std::string(verb);
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

void run_external_verb(std::string_view verb, char** argv) {
  const std::string program = external_verb(verb);
  if (program.empty()) return;
  ::setenv("IOSIG_COMMAND", own_program().c_str(), 1);
  ::execv(program.c_str(), argv + 1);
}

}  // namespace iosig::cli
