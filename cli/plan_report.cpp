#include "plan_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "iosig/base/text.h"
#include "iosig/base/units.h"
#include "iosig/cost/striping.h"

namespace iosig::cli {
namespace {

/// The bytes that each class holds of a region.
std::vector<std::uint64_t> class_bytes(const Servers& servers, const Stripes& stripes, std::uint64_t length) {
  const StripeMap map(servers, stripes);
  std::vector<std::uint64_t> bytes;
  std::uint32_t server = 0;
  for (const ServerClass& each : servers.classes) {
    std::uint64_t& sum = bytes.emplace_back(0);
    for (std::uint32_t n = 0; n < each.count; ++n) sum += map.bytes_on(server++, length);
  }
  return bytes;
}

std::string stripes_words(const Plan& plan, const Stripes& stripes) {
  std::vector<std::string> words;
  for (std::size_t n = 0; n < stripes.size(); ++n)
    if (stripes[n] > 0)
      words.push_back(fmt::format("{} on {}", bytes_text(stripes[n]), printable(plan.servers.classes[n].name)));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string share_text(double part, double whole) {
  const double percent = whole > 0 ? 100 * part / whole : 0;
  return percent > 0 && percent < 1 ? "under 1 %" : fmt::format("{:.0f} %", percent);
}

/// "region 7 of /data/x"; without the file if there is only one.
std::string region_name(const Plan& plan, std::uint32_t region) {
  const PlannedRegion& at = plan.regions[region];
  const std::string name = fmt::format("region {}", at.number);
  return plan.files.size() == 1 ? name : fmt::format("{} of {}", name, printable(plan.files[at.file].path));
}

/// "64 MB of ssd": what the region takes of other classes than its home.
std::string taken_words(const Plan& plan, std::uint32_t region, const Stripes& stripes) {
  const auto bytes = class_bytes(plan.servers, stripes, plan.regions[region].length_bytes);
  std::vector<std::string> words;
  for (std::size_t n = 0; n < bytes.size(); ++n)
    if (n != plan.home && bytes[n] > 0)
      words.push_back(
          fmt::format("{} of {}", about_bytes(static_cast<double>(bytes[n])), printable(plan.servers.classes[n].name)));
  return fmt::format("{}", fmt::join(words, ", "));
}

void add_regions(const Plan& plan, const PlannedWindow& window, std::size_t most, std::string& text) {
  const auto requests = static_cast<double>(requests_of(window));
  std::vector<std::uint32_t> moved_in;
  for (std::uint32_t n = 0; n < window.placements.size(); ++n)
    if (!taken_words(plan, n, window.placements[n].stripe_bytes).empty()) moved_in.push_back(n);
  const auto saves = [&](std::uint32_t n) { return window.placements[n].home_s - window.placements[n].seconds; };
  std::ranges::stable_sort(moved_in, std::ranges::greater{}, saves);
  for (std::size_t n = 0; n < std::min(most, moved_in.size()); ++n) {
    const std::uint32_t region = moved_in[n];
    const RegionPlacement& each = window.placements[region];
    text += fmt::format("  {}: {} of the requests, saves {}, {}; stripes of {}\n", region_name(plan, region),
                        share_text(static_cast<double>(each.requests), requests),
                        about_seconds(std::max(0.0, saves(region))), taken_words(plan, region, each.stripe_bytes),
                        stripes_words(plan, each.stripe_bytes));
  }
  if (moved_in.size() > most) text += fmt::format("  and {} more regions; --all lists them\n", moved_in.size() - most);
  if (moved_in.empty())
    text += fmt::format("  all regions stay on {}\n", printable(plan.servers.classes[plan.home].name));
}

void add_window(const Plan& plan, std::size_t number, std::size_t most, std::string& text) {
  const PlannedWindow& window = plan.windows[number];
  const std::string span =
      plan.window_s > 0 ? fmt::format(" from {}", about_seconds(window.start_s - plan.windows[0].start_s)) : "";
  text += fmt::format("window {}{}: {}, {} predicted, {} with all on {}\n", number, span,
                      amount_of(requests_of(window), "request"), about_seconds(window.seconds),
                      about_seconds(window.home_s), printable(plan.servers.classes[plan.home].name));
  if (!window.moves.empty()) {
    std::uint64_t bytes = 0;
    for (const PlannedMove& each : window.moves) bytes += plan.regions[each.region].length_bytes;
    text += fmt::format("  before it: {}, {}, about {}\n", amount_of(window.moves.size(), "move"),
                        about_bytes(static_cast<double>(bytes)), about_seconds(window.move_s));
  }
  add_regions(plan, window, most, text);
}

/// The regions that share a column.
struct Columns {
  std::size_t regions, columns;
  [[nodiscard]] std::size_t first(std::size_t column) const { return column * regions / columns; }
};

char letter_of(const Plan& plan, const PlannedWindow& window, std::size_t first, std::size_t last) {
  std::vector<double> held(plan.servers.classes.size());
  for (std::size_t n = first; n < last; ++n) {
    const auto bytes = class_bytes(plan.servers, window.placements[n].stripe_bytes, plan.regions[n].length_bytes);
    for (std::size_t c = 0; c < bytes.size(); ++c) held[c] += static_cast<double>(bytes[c]);
  }
  const auto most = std::ranges::max_element(held);
  const std::string& name = plan.servers.classes[static_cast<std::size_t>(most - held.begin())].name;
  const bool is_mixed = std::ranges::count_if(held, [](double bytes) { return bytes > 0; }) > 1;
  const auto first_byte = static_cast<unsigned char>(name.empty() ? '?' : name.front());
  const unsigned char letter = std::isgraph(first_byte) != 0 ? first_byte : '?';  // others take no column, or several
  return static_cast<char>(is_mixed ? std::toupper(letter) : std::tolower(letter));
}

}  // namespace

std::string amount_of(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string plan_words(const Plan& plan, std::size_t max_regions) {
  std::vector<std::string> classes;
  for (const ServerClass& each : plan.servers.classes)
    classes.push_back(fmt::format("{} {}", each.count, printable(each.name)));
  std::string text = fmt::format(
      "{}, {}, {} over {} servers, {}\n", amount_of(plan.files.size(), "file"),
      amount_of(plan.regions.size(), "region"), amount_of(plan.windows.size(), "window"), fmt::join(classes, " and "),
      plan.servers.processes == 1 ? "1 process" : fmt::format("{} processes", plan.servers.processes));
  for (std::size_t n = 0; n < plan.windows.size(); ++n) add_window(plan, n, max_regions, text);
  const auto sum = [&](double PlannedWindow::*member) {
    return std::accumulate(plan.windows.begin(), plan.windows.end(), 0.0,
                           [&](double total, const PlannedWindow& each) { return total + each.*member; });
  };
  return text + fmt::format("in all: {} predicted, {} of moves, {} with all on {}",
                            about_seconds(sum(&PlannedWindow::seconds)), about_seconds(sum(&PlannedWindow::move_s)),
                            about_seconds(sum(&PlannedWindow::home_s)),
                            printable(plan.servers.classes[plan.home].name));
}

std::string plan_picture(const Plan& plan, std::size_t columns) {
  constexpr std::string_view shades = " .:-=+*#";
  const Columns part{plan.regions.size(), std::min(columns, plan.regions.size())};
  std::string text;
  for (std::size_t number = 0; number < plan.windows.size(); ++number) {
    const PlannedWindow& window = plan.windows[number];
    std::vector<std::uint64_t> requests(part.columns);
    for (std::size_t c = 0; c < part.columns; ++c)
      for (std::size_t n = part.first(c); n < part.first(c + 1); ++n) requests[c] += window.placements[n].requests;
    const std::uint64_t most = std::max<std::uint64_t>(1, *std::ranges::max_element(requests));
    std::string hot, places;
    for (std::size_t c = 0; c < part.columns; ++c) {
      const double share = static_cast<double>(requests[c]) / static_cast<double>(most);
      hot +=
          shades[requests[c] == 0 ? 0 : 1 + static_cast<std::size_t>(share * static_cast<double>(shades.size() - 2))];
      places += letter_of(plan, window, part.first(c), part.first(c + 1));
    }
    text += fmt::format("{:>5} |{}|\n      |{}|\n", number, hot, places);
  }
  text.pop_back();
  return text;
}

}  // namespace iosig::cli
