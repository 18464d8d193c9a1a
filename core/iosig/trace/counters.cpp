#include "iosig/trace/counters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "iosig/base/crc32c.h"
#include "iosig/base/text.h"

namespace iosig::trace {
namespace {

constexpr std::size_t fields_of_line = 17;

std::string ranges_text(const WayCounters& way) { return fmt::format("{}", fmt::join(way.ranges, ",")); }

std::uint32_t checksum_of(std::string_view text) {
  return crc32c({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

/// Takes the fields of a line one after another.
class Fields {
 public:
  explicit Fields(std::string_view line) : fields_(split(line, '\t')) {}

  [[nodiscard]] bool are_all() const { return fields_.size() == fields_of_line; }
  [[nodiscard]] bool is_sound() const { return is_sound_; }
  std::string_view text() { return fields_[next_++]; }
  std::uint64_t number() { return number_in(text()); }
  template <std::size_t count>
  void numbers(std::array<std::uint64_t, count>& into) {
    const auto parts = split(text(), ',');
    if (parts.size() != count) return void(is_sound_ = false);
    for (std::size_t index = 0; index < count; ++index) into[index] = number_in(parts[index]);
  }
  std::uint64_t number_in(std::string_view text) {
    const auto number = parse_count<std::uint64_t>(text);
    // Sums of them must not overflow.
    if (!number || *number > INT64_MAX) is_sound_ = false;
    return number.value_or(0);
  }
  Call call(Layer layer, Moves moves) {
    const Call named = call_of(text());
    if (named == Call::none || layer_of(named) != layer || moves_of(named) != moves) is_sound_ = false;
    return named;
  }
  void refuse() { is_sound_ = false; }

 private:
  std::vector<std::string_view> fields_;
  std::size_t next_ = 0;
  bool is_sound_ = true;
};

void read_way(Fields& fields, WayCounters& way) {
  std::array<std::uint64_t, 4> sums{};
  fields.numbers(sums);
  way.calls = sums[0], way.bytes = sums[1], way.consecutive = sums[2], way.forward = sums[3];
  fields.numbers(way.ranges);
  if (way.consecutive > way.calls || way.forward > way.calls - way.consecutive) fields.refuse();
}

std::optional<FileCounters> counters_of(std::string_view line) {
  Fields fields(line);
  if (!fields.are_all()) return std::nullopt;
  FileCounters file;
  const std::string_view layer = fields.text();
  const auto* const known = std::ranges::find(layer_names, layer);
  if (known == std::end(layer_names)) return std::nullopt;
  file.layer = static_cast<Layer>(known - std::begin(layer_names));
  file.read_call = fields.call(file.layer, Moves::reads);
  file.write_call = fields.call(file.layer, Moves::writes);
  if (const std::string_view rank = fields.text(); rank != "all")
    file.rank = static_cast<std::int64_t>(fields.number_in(rank));
  file.processes = fields.number();
  read_way(fields, file.reads);
  read_way(fields, file.writes);
  file.syncs = fields.number(), file.mapped = fields.number(), file.end = fields.number();
  const std::string_view known_facts = fields.text();
  file.has_order = known_facts.find('o') != std::string_view::npos;
  file.has_sizes = known_facts.find('s') != std::string_view::npos;
  file.alignment = fields.number(), file.unaligned = fields.number();
  if (const std::string_view sizes = fields.text(); !sizes.empty())
    for (const std::string_view each : split(sizes, ',')) {
      const auto parts = split(each, ':');
      if (parts.size() != 2) return std::nullopt;
      file.sizes.emplace_back(fields.number_in(parts[0]), fields.number_in(parts[1]));
    }
  auto path = percent_decoded(fields.text());
  if (!path || !fields.is_sound() || file.unaligned > file.calls()) return std::nullopt;
  file.path = std::move(*path);
  return file;
}

}  // namespace

std::string counters_text(const std::vector<FileCounters>& all) {
  std::string text = fmt::format("{}\n", counters_schema);
  const auto way_text = [](const WayCounters& way) {
    return fmt::format("{},{},{},{}\t{}", way.calls, way.bytes, way.consecutive, way.forward, ranges_text(way));
  };
  for (const FileCounters& file : all) {
    std::string sizes;
    for (const auto& [size, count] : file.sizes) sizes += fmt::format("{}{}:{}", sizes.empty() ? "" : ",", size, count);
    text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}{}\t{}\t{}\t{}\t{}\n",
                        layer_names[static_cast<std::size_t>(file.layer)], name_of(file.read_call),
                        name_of(file.write_call), file.rank ? std::to_string(*file.rank) : "all", file.processes,
                        way_text(file.reads), way_text(file.writes), file.syncs, file.mapped, file.end,
                        file.has_order ? "o" : "-", file.has_sizes ? "s" : "-", file.alignment, file.unaligned, sizes,
                        percent_encoded(file.path));
  }
  return text + fmt::format("end\t{}\t{:08x}\n", all.size(), checksum_of(text));
}

Result<std::vector<FileCounters>> parse_counters(std::string_view text, std::string_view shown) {
  const auto fault = [&](std::size_t line, std::string_view why) {
    return fail(ErrorKind::bad_input, "{}:{}: {}; import the log again", printable(shown), line, why);
  };
  const std::size_t tail = text.rfind("end\t");
  if (!text.starts_with(fmt::format("{}\n", counters_schema)))
    return fault(1, fmt::format("expected '{}'", counters_schema));
  std::vector<FileCounters> all;
  std::size_t at = counters_schema.size() + 1;
  for (std::size_t line = 2; at < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view each = text.substr(at, end - at);
    if (at == tail) {
      if (text.substr(at) != fmt::format("end\t{}\t{:08x}\n", all.size(), checksum_of(text.substr(0, at))))
        return fault(line, "the number of lines or the checksum is wrong");
      return all;
    }
    auto file = counters_of(each);
    if (!file) return fault(line, "no counters of a file");
    all.push_back(std::move(*file));
    at = end + 1;
  }
  return fault(all.size() + 2, "cut; expected a line 'end'");
}

}  // namespace iosig::trace
