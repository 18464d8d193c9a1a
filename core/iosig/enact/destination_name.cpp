#include "iosig/enact/destination_name.h"

#include "iosig/base/text.h"
#include "iosig/enact/user_directory.h"

namespace iosig {
namespace {

constexpr std::string_view retired_suffix = ".settled";

}  // namespace

std::optional<std::string_view> id_in(std::string_view name) {
  const std::string_view id = name.substr(0, id_digits);
  if (id.size() < id_digits || id.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  if (name.size() > id_digits && name[id_digits] != '.') return {};
  return id;
}

std::string retired_name(std::string_view id) { return fmt::format("{}{}", id, retired_suffix); }
bool is_retired_name(std::string_view name) {
  return name.size() == id_digits + retired_suffix.size() && id_in(name) && name.ends_with(retired_suffix);
}

std::optional<DestinationName> parse_destination(std::string_view path) {
  const std::string directory = fmt::format("/{}/", user_directory_name());
  const std::size_t at = path.rfind(directory);
  if (at == std::string_view::npos) return {};
  const std::string_view below = path.substr(at + directory.size());
  const std::size_t slash = below.find('/');
  const auto id = id_in(below.substr(0, slash));
  if (!id) return {};
  DestinationName parsed{std::string(at == 0 ? "/" : path.substr(0, at)), std::string(*id), {}, false};
  if (slash != std::string_view::npos) {
    parsed.name = below.substr(slash + 1);
    if (slash != id_digits || parsed.name.empty() || parsed.name.find('/') != std::string::npos) return {};
    parsed.has_directory = true;
  } else if (below.size() > id_digits) {
    parsed.name = below.substr(id_digits + 1);
  }
  return parsed;
}

}  // namespace iosig
