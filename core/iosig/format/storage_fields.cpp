#include "iosig/format/storage_fields.h"

#include <fmt/ranges.h>

#include <cmath>

#include "iosig/base/units.h"

namespace iosig::storage_fields {

Result<std::string> text_of(const toml::node& node, std::string_view expected) {
  if (const auto* text = node.as_string()) return text->get();
  return fail(ErrorKind::bad_input, "expected {}", expected);
}

Result<std::uint32_t> count_of(const toml::node& node, std::uint32_t most) {
  const auto* number = node.as_integer();
  if (number == nullptr) return fail(ErrorKind::bad_input, "expected a whole number");
  if (number->get() < 0 || number->get() > most)
    return fail(ErrorKind::bad_input, "is out of range; expected 0 to {}", most);
  return static_cast<std::uint32_t>(number->get());
}

namespace {

template <class T>
Result<T> in_range(const Result<T>& value, double low, double high, std::string_view range) {
  if (!value) return value;
  const double number = static_cast<double>(*value);
  if (!(number >= low && number <= high)) return fail(ErrorKind::bad_input, "is out of range; expected {}", range);
  return value;
}

Result<std::uint64_t> bytes_of(const toml::node& node) {
  if (const auto* count = node.as_integer()) {
    if (count->get() < 0) return fail(ErrorKind::bad_input, "is negative; expected a size of at least 0");
    return static_cast<std::uint64_t>(count->get());
  }
  const auto text = text_of(node, "a size such as \"4KB\"");
  return text ? parse_bytes(*text) : pass_on(text.error());
}

Result<double> rate_of(const toml::node& node) {
  const auto text = text_of(node, "a rate such as \"1.7GB/s\"");
  return text ? in_range(parse_bytes_per_s(*text), 1, 0x1p60, "1B/s to 1EB/s") : pass_on(text.error());
}

Result<double> seconds_of(const toml::node& node) {
  const auto text = text_of(node, "a time such as \"0.1ms\"");
  return text ? parse_seconds(*text) : pass_on(text.error());
}

Result<double> watts_of(const toml::node& node) {
  const auto text = text_of(node, "a power such as \"6W\"");
  return text ? parse_watts(*text) : pass_on(text.error());
}

Result<double> number_of(const toml::node& node) {
  if (const auto number = node.value<double>(); number && std::isfinite(*number) && !node.is_boolean()) return *number;
  return fail(ErrorKind::bad_input, "expected a number");
}

Result<bool> truth_of(const toml::node& node) {
  if (const auto* truth = node.as_boolean()) return truth->get();
  return fail(ErrorKind::bad_input, "expected true or false");
}

template <class T>
const T* value_if_any(const T& value) {
  return &value;
}
template <class T>
const T* value_if_any(const std::optional<T>& value) {
  return value ? &*value : nullptr;
}
const std::string* value_if_any(const std::string& value) { return value.empty() ? nullptr : &value; }

template <class Owner, class Member, class Read, class Show>
Field<Owner> field(std::string_view key, Member Owner::*member, Read read, Show show) {
  return {key,
          [=](Owner& owner, const toml::node& node) -> Result<void> {
            auto value = read(node);
            if (!value) return pass_on(value.error());
            owner.*member = *value;
            return {};
          },
          [=](const Owner& owner) -> std::string {
            const auto* value = value_if_any(owner.*member);
            return value == nullptr ? std::string{} : show(*value);
          },
          [=](Owner& to, const Owner& from) { to.*member = from.*member; }};
}

std::string quoted_bytes(std::uint64_t bytes) { return toml_string(bytes_text(bytes)); }
std::string quoted_rate(double rate) { return toml_string(rate_text(rate)); }
std::string quoted_seconds(double seconds) { return toml_string(seconds_text(seconds)); }
std::string quoted_watts(double watts) { return toml_string(watts_text(watts)); }
std::string truth_text(bool truth) { return truth ? "true" : "false"; }
/// Returns a TOML float or integer: "9000" and "1e-06" both parse to the number.
std::string toml_number(double number) { return fmt::format("{}", number); }

template <auto Parse>
auto ranged(double low, double high, std::string_view range) {
  return [=](const toml::node& node) { return in_range(Parse(node), low, high, range); };
}

Result<std::string> name_text(const toml::node& node) {
  auto text = text_of(node, "a text");
  if (text && text->empty()) return fail(ErrorKind::bad_input, "is empty; expected a name");
  return text;
}

Result<std::string> absolute_path(const toml::node& node) {
  auto text = text_of(node, "a path");
  if (text && (text->empty() || text->front() != '/' || text->find('\0') != std::string::npos))
    return fail(ErrorKind::bad_input, "'{}' is not an absolute path", printable(*text));
  return text;
}

}  // namespace

const std::vector<Field<Device>>& device_fields() {
  using D = Device;
  constexpr double century_s = 100 * year_s;
  const auto latency = ranged<seconds_of>(0, 3600, "0s to 1h");
  const auto power = ranged<watts_of>(0, 1e6, "0W to 1000kW");
  static const std::vector<Field<D>> fields{
      field("name", &D::name, name_text, toml_string),
      field(
          "kind", &D::kind, [](const toml::node& n) { return enum_of(n, kind_names); },
          [](DeviceKind kind) { return toml_string(name_of(kind, kind_names)); }),
      field("path", &D::path, name_text, toml_string),
      field("transport", &D::transport, name_text, toml_string),
      field("capacity", &D::capacity_bytes, bytes_of, quoted_bytes),
      field("rotational", &D::rotational, truth_of, truth_text),
      field("read_bandwidth", &D::read_bytes_per_s, rate_of, quoted_rate),
      field("write_bandwidth", &D::write_bytes_per_s, rate_of, quoted_rate),
      field("operation_latency", &D::operation_latency_s, latency, quoted_seconds),
      field("read_operation_latency", &D::read_operation_latency_s, latency, quoted_seconds),
      field("seek_latency", &D::seek_latency_s, latency, quoted_seconds),
      field("random_write_latency", &D::random_write_latency_s, latency, quoted_seconds),
      field("random_new_write_latency", &D::random_new_write_latency_s, latency, quoted_seconds),
      field("random_read_latency", &D::random_read_latency_s, latency, quoted_seconds),
      field("drain_latency", &D::drain_latency_s, latency, quoted_seconds),
      field("drain_bandwidth", &D::drain_bytes_per_s, rate_of, quoted_rate),
      field("random_drain_bandwidth", &D::random_drain_bytes_per_s, rate_of, quoted_rate),
      field("rewrite_latency", &D::rewrite_latency_s, latency, quoted_seconds),
      field("buffered_write_latency", &D::buffered_write_latency_s, latency, quoted_seconds),
      field("buffered_write_bandwidth", &D::buffered_write_bytes_per_s, rate_of, quoted_rate),
      field("buffered_random_write_latency", &D::buffered_random_write_latency_s, latency, quoted_seconds),
      field("buffered_small_write_latency", &D::buffered_small_write_latency_s, latency, quoted_seconds),
      field("buffered_read_latency", &D::buffered_read_latency_s, latency, quoted_seconds),
      field("buffered_read_bandwidth", &D::buffered_read_bytes_per_s, rate_of, quoted_rate),
      field("cached_write_latency", &D::cached_write_latency_s, latency, quoted_seconds),
      field("cached_write_bandwidth", &D::cached_write_bytes_per_s, rate_of, quoted_rate),
      field("cached_read_latency", &D::cached_read_latency_s, latency, quoted_seconds),
      field("cached_read_bandwidth", &D::cached_read_bytes_per_s, rate_of, quoted_rate),
      field("max_iops", &D::max_iops, ranged<number_of>(1e-6, 1e12, "a number above 0, up to 1e12"), toml_number),
      field("busy_share", &D::busy_share, ranged<number_of>(0, 1, "0 to 1"), toml_number),
      field("mttf", &D::mttf_s, ranged<seconds_of>(1, 1e6 * century_s, "at least 1s"), quoted_seconds),
      field("ber", &D::bit_error_rate, ranged<number_of>(0, 0.5, "0 to 0.5 bit errors per bit"), toml_number),
      field(
          "sector_bits", &D::sector_bits,
          [](const toml::node& n) { return in_range(count_of(n, 1u << 20), 1, 1 << 20, "1 to 1048576"); },
          [](std::uint32_t count) { return fmt::format("{}", count); }),
      field(
          "ecc_bits", &D::ecc_bits, [](const toml::node& n) { return count_of(n, 1u << 20); },
          [](std::uint32_t count) { return fmt::format("{}", count); }),
      field("mttr", &D::mttr_s, ranged<seconds_of>(1e-3, century_s, "1ms to 100y"), quoted_seconds),
      field("idle_power", &D::idle_power_w, power, quoted_watts),
      field("active_power", &D::active_power_w, power, quoted_watts),
  };
  return fields;
}

const std::vector<Field<MountPoint>>& mount_point_fields() {
  using M = MountPoint;
  static const std::vector<Field<M>> fields{
      field("path", &M::path, absolute_path, toml_string),
      field("device", &M::device, name_text, toml_string),
      field("filesystem", &M::filesystem, name_text, toml_string),
      field("block_size", &M::block_bytes, ranged<bytes_of>(1, GiB, "1B to 1GB"), quoted_bytes),
      field("free", &M::free_bytes, bytes_of, quoted_bytes),
      field("max_file_size", &M::max_file_bytes, ranged<bytes_of>(1, 0x1p63, "at least 1B"), quoted_bytes),
      field(
          "visibility", &M::visibility, [](const toml::node& n) { return enum_of(n, visibility_names); },
          [](Visibility visibility) { return toml_string(name_of(visibility, visibility_names)); }),
      field("persistent", &M::persistent, truth_of, truth_text),
      field("follows_links", &M::follows_links, truth_of, truth_text),
      field("archive", &M::archive, truth_of, truth_text),
      field("tamperproof", &M::tamperproof, truth_of, truth_text),
      field("forbidden", &M::forbidden, truth_of, truth_text),
      field("max_share", &M::max_share, ranged<number_of>(1e-6, 1, "a number above 0, up to 1"), toml_number),
  };
  return fields;
}

const std::vector<Field<Server>>& server_fields() {
  using S = Server;
  const auto startup = ranged<seconds_of>(0, 3600, "0s to 1h");
  static const std::vector<Field<S>> fields{
      field("name", &S::name, name_text, toml_string),
      field("class", &S::server_class, name_text, toml_string),
      field("mount_point", &S::mount_point, absolute_path, toml_string),
      field("device", &S::device, name_text, toml_string),
      field("target", &S::target, name_text, toml_string),
      field("read_startup", &S::read_startup_s, startup, quoted_seconds),
      field("read_bandwidth", &S::read_bytes_per_s, rate_of, quoted_rate),
      field("write_startup", &S::write_startup_s, startup, quoted_seconds),
      field("write_bandwidth", &S::write_bytes_per_s, rate_of, quoted_rate),
      field("capacity", &S::capacity_bytes, bytes_of, quoted_bytes),
  };
  return fields;
}

const std::vector<Field<Network>>& network_fields() {
  using N = Network;
  static const std::vector<Field<N>> fields{
      field("startup", &N::startup_s, ranged<seconds_of>(0, 3600, "0s to 1h"), quoted_seconds),
      field("bandwidth", &N::bytes_per_s, rate_of, quoted_rate),
  };
  return fields;
}

std::vector<std::string> redundancy_lines(const Redundancy& redundancy) {
  std::vector<std::string> lines{fmt::format("scheme = {}", toml_string(name_of(redundancy.scheme, scheme_names)))};
  if (redundancy.data != 0) lines.push_back(fmt::format("data = {}", redundancy.data));
  if (redundancy.parity != 0) lines.push_back(fmt::format("parity = {}", redundancy.parity));
  if (redundancy.local_groups != 0) lines.push_back(fmt::format("local_groups = {}", redundancy.local_groups));
  std::vector<std::string> names;
  for (const std::string& member : redundancy.members) names.push_back(toml_string(member));
  if (!names.empty()) lines.push_back(fmt::format("members = [{}]", fmt::join(names, ", ")));
  return lines;
}

std::string redundancy_text(const Redundancy& redundancy) {
  std::string text;
  for (const std::string& line : redundancy_lines(redundancy)) text += (text.empty() ? "{ " : ", ") + line;
  return text + " }";
}

}  // namespace iosig::storage_fields
