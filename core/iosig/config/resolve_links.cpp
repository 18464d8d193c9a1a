#include "iosig/config/resolve_links.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <vector>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/model/filesystem.h"

namespace iosig {
namespace {

/// Undoes the octal escapes of mountinfo: "\040" is a blank.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto is_octal = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && is_octal(i + 1) && is_octal(i + 2) && is_octal(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

}  // namespace

std::set<std::string> blocking_mounts(std::string_view mountinfo) {
  constexpr std::size_t mount_point = 4;  // ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS ... - TYPE SOURCE OPTIONS
  std::set<std::string> blocking;
  for (const std::string_view line : split(mountinfo, '\n')) {
    constexpr std::string_view separator = " - ";
    const auto end = line.find(separator);
    const auto words = words_of(line.substr(0, end));
    if (end == line.npos || words.size() <= mount_point) continue;
    const auto type = words_of(line.substr(end + separator.size()));
    if (type.empty() || !(type.front().starts_with("fuse") || is_shared_filesystem(type.front()))) continue;
    blocking.insert(unescaped(words[mount_point]));
  }
  return blocking;
}

std::string resolve_links(std::string_view path, const std::set<std::string>& blocking) {
  constexpr int max_links = 40;    // as the kernel
  std::vector<std::string> ahead;  // the last one is next
  const auto push = [&](std::string_view more) {
    const auto parts = split(more, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) ahead.emplace_back(*part);
  };
  push(path);
  std::string resolved;
  bool follows = true;
  for (int links = 0; !ahead.empty();) {
    const std::string part = std::move(ahead.back());
    ahead.pop_back();
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      resolved.resize(resolved.empty() ? 0 : resolved.rfind('/'));
      continue;
    }
    std::string next = resolved;
    next += '/';
    next += part;
    follows = follows && links < max_links && !blocking.contains(next);
    std::array<char, PATH_MAX> content;
    const ssize_t length = follows ? ::readlink(next.c_str(), content.data(), content.size()) : -1;
    if (length <= 0) {
      resolved = next;
      continue;
    }
    ++links;
    if (content.front() == '/') resolved.clear();
    push({content.data(), static_cast<std::size_t>(length)});
  }
  return resolved.empty() ? "/" : resolved;
}

std::function<std::string(const std::string&)> link_resolver() {
  const auto mountinfo = read_file("/proc/self/mountinfo");
  return [blocking = blocking_mounts(mountinfo ? *mountinfo : "")](const std::string& path) {
    return resolve_links(path, blocking);
  };
}

}  // namespace iosig
