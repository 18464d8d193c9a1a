#include "iosig/trace/open_places.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "iosig/base/text.h"

namespace iosig::trace {
namespace {

constexpr std::size_t max_places = 4096, max_loaded = 4096;

std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

void OpenPlaceReader::add_object(std::string_view fact) {
  const std::vector<std::string_view> fields = split(fact, '\t');
  if (fields.size() != 6 || loaded_.size() >= max_loaded) return;
  const auto begin = hexadecimal(fields[0]), end = hexadecimal(fields[1]), bias = hexadecimal(fields[2]);
  const auto bytes = parse_count<std::uint64_t>(fields[3]), modified = parse_count<std::uint64_t>(fields[4]);
  if (!begin || !end || !bias || !bytes || !modified || (!fields[5].empty() && fields[5].front() != '/')) return;
  const CodeFile file{.path = std::string(fields[5]), .bytes = *bytes, .modified_ns = *modified};
  const auto known = std::ranges::find(into_.files, file);
  const auto number = static_cast<std::uint32_t>(known - into_.files.begin());
  if (known == into_.files.end()) into_.files.push_back(file);
  loaded_.push_back({*begin, *end, *bias, number});
}

void OpenPlaceReader::add_place(std::string_view fact) {
  const std::vector<std::string_view> fields = split(fact, '\t');
  const auto path = parse_count<std::uint32_t>(fields.front());
  if (!path || into_.places.size() >= max_places) return;
  OpenPlace place{.path = *path, .callers = {}};
  for (std::size_t n = 1; n < fields.size(); ++n) {
    const auto address = hexadecimal(fields[n]);
    if (!address) return;
    const auto holder = std::ranges::find_if(loaded_.rbegin(), loaded_.rend(), [&](const Loaded& each) {
      return *address - 1 >= each.begin && *address - 1 < each.end;
    });
    if (holder != loaded_.rend()) place.callers.push_back({holder->file, *address - 1 - holder->bias});
  }
  if (!place.callers.empty() && std::ranges::find(into_.places, place) == into_.places.end())
    into_.places.push_back(std::move(place));
}

}  // namespace iosig::trace
