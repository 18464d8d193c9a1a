#include <doctest/doctest.h>

#include <algorithm>

#include "iosig/base/files.h"
#include "iosig/base/units.h"
#include "iosig/format/rules_toml.h"
#include "iosig/format/storage_toml.h"

using namespace iosig;

namespace {

const std::string head = "schema = \"iosig.storage/1\"\n";
const std::string mount = "[[mount_point]]\npath = \"/mnt/a\"\ndevice = \"a\"\n";
const std::string device = "[[device]]\nname = \"a\"\nkind = \"ssd\"\n";

Storage parsed(const std::string& text) {
  auto storage = parse_storage(text, "storage.toml");
  REQUIRE_MESSAGE(storage.has_value(), storage.error().message);
  return *storage;
}

std::string refusal(const std::string& text) {
  const auto storage = parse_storage(text, "storage.toml");
  REQUIRE_FALSE_MESSAGE(storage.has_value(), text);
  CHECK(storage.error().kind == ErrorKind::bad_input);
  return storage.error().message;
}

}  // namespace

TEST_CASE("storage.toml: the paper's Table 2 is read as printed") {
  const Storage storage = parsed(*read_file(IOSIG_TEST_DATA "/paper-table2.toml"));
  REQUIRE(storage.mount_points.size() == 5);
  REQUIRE(storage.devices.size() == 7);
  const Device* hdd = storage.find_device("hdd");
  REQUIRE(hdd != nullptr);
  CHECK(hdd->operation_latency_s == 0.15);
  CHECK(hdd->seek_latency_s == 0.02);
  CHECK(hdd->max_iops == 10.0);
  const Device* raid = storage.find_device("raid1");
  REQUIRE(raid->redundancy);
  CHECK(raid->redundancy->members == std::vector<std::string>{"ssd0", "ssd1"});
  CHECK(storage.find_mount_point("/paper/nfs")->visibility == Visibility::global);
  CHECK_FALSE(storage.find_mount_point("/paper/ramdisk")->persistent);
  CHECK(storage.find_mount_point("/paper/ramdisk")->free_bytes == GiB);
}

TEST_CASE("storage.toml: what is written is read back, origins and spreads too") {
  Storage storage = parsed(*read_file(IOSIG_TEST_DATA "/paper-table2.toml"));
  Device& nvram = *std::ranges::find(storage.devices, "nvram", &Device::name);
  nvram.provenance["write_bandwidth"] = {Origin::measured, "", Origin::measured, "1.6GB/s", "1.8GB/s"};
  const std::string text = storage_text(storage);
  const Storage again = parsed(text);
  CHECK(storage_text(again) == text);
  const Provenance& provenance = again.find_device("nvram")->provenance.at("write_bandwidth");
  CHECK(provenance.origin == Origin::measured);
  CHECK(provenance.probed_low_text == "1.6GB/s");
  CHECK(again.find_device("nvram")->provenance.at("read_bandwidth").origin == Origin::config);
}

TEST_CASE("storage.toml: limits are read and written back, and a share is above 0 and at most 1") {
  const Storage storage = parsed(head + mount + "forbidden = true\nmax_share = 0.5\n" + device);
  CHECK(storage.mount_points.front().forbidden);
  CHECK(storage.mount_points.front().max_share == 0.5);
  CHECK(parsed(storage_text(storage)).mount_points == storage.mount_points);
  CHECK_FALSE(parsed(head + mount + device).mount_points.front().max_share);
  CHECK(parsed(head + mount + "max_share = 1\n" + device).mount_points.front().max_share == 1);
  for (const char* share : {"0", "1.01", "-0.5", "nan", "\"50%\"", "true"})
    CHECK_MESSAGE(
        refusal(head + mount + "max_share = " + share + "\n" + device).find("max_share: ") != std::string::npos, share);
  CHECK(refusal(head + mount + "forbidden = 1\n" + device).find("expected true or false") != std::string::npos);
}

TEST_CASE("storage.toml: the values of a page cache are read, written back, and absent where nobody gave them") {
  const std::string given =
      "random_write_latency = \"8ms\"\nrandom_read_latency = \"7ms\"\n"
      "drain_latency = \"2ms\"\ndrain_bandwidth = \"3GB/s\"\nrewrite_latency = \"6ms\"\n"
      "buffered_write_latency = \"1us\"\n"
      "buffered_write_bandwidth = \"2GB/s\"\nbuffered_random_write_latency = \"2us\"\n"
      "buffered_small_write_latency = \"700ns\"\nbuffered_read_latency = \"500ns\"\nbuffered_read_bandwidth = "
      "\"1GB/s\"\n"
      "cached_write_latency = \"300ns\"\ncached_write_bandwidth = \"4GB/s\"\n"
      "cached_read_latency = \"200ns\"\ncached_read_bandwidth = \"8GB/s\"\n";
  const Storage storage = parsed(head + mount + device + given);
  const Device& read = storage.devices.front();
  CHECK(read.random_write_latency_s == doctest::Approx(8e-3));
  CHECK(read.random_read_latency_s == doctest::Approx(7e-3));
  CHECK(read.drain_latency_s == doctest::Approx(2e-3));
  CHECK(read.drain_bytes_per_s == 3.0 * GiB);
  CHECK(read.rewrite_latency_s == doctest::Approx(6e-3));
  CHECK(read.buffered_write_latency_s == doctest::Approx(1e-6));
  CHECK(read.buffered_write_bytes_per_s == 2.0 * GiB);
  CHECK(read.buffered_random_write_latency_s == doctest::Approx(2e-6));
  CHECK(read.buffered_small_write_latency_s == doctest::Approx(7e-7));
  CHECK(read.buffered_read_latency_s == doctest::Approx(5e-7));
  CHECK(read.buffered_read_bytes_per_s == 1.0 * GiB);
  CHECK(read.cached_write_latency_s == doctest::Approx(3e-7));
  CHECK(read.cached_write_bytes_per_s == 4.0 * GiB);
  CHECK(read.cached_read_latency_s == doctest::Approx(2e-7));
  CHECK(read.cached_read_bytes_per_s == 8.0 * GiB);
  CHECK(storage_text(storage).find(given) != std::string::npos);
  CHECK(storage_text(parsed(head + mount + device)).find("buffered") == std::string::npos);
  CHECK(refusal(head + mount + device + "buffered_write_bandwidth = \"1us\"\n").find("buffered_write_bandwidth") !=
        std::string::npos);
}

TEST_CASE("storage.toml: how busy a probe saw the machine, and what did not settle, are read and written back") {
  const std::string given = "random_new_write_latency = \"9ms\"\nbusy_share = 0.25\n";
  const std::string records =
      "[device.probed]\n"
      "random_new_write_latency = { value = \"9ms\", by = \"measured\", low = \"5ms\", high = \"13ms\", "
      "settled = false }\n"
      "busy_share = { value = 0.25, by = \"measured\" }\n";
  const Storage storage = parsed(head + mount + device + given + records);
  const Device& read = storage.devices.front();
  CHECK(read.random_new_write_latency_s == doctest::Approx(9e-3));
  CHECK(read.busy_share == 0.25);
  CHECK_FALSE(read.provenance.at("random_new_write_latency").probed_settled);
  CHECK(read.provenance.at("busy_share").probed_settled);
  CHECK(storage_text(storage).find(given) != std::string::npos);
  CHECK(storage_text(storage).find(records) != std::string::npos);
  CHECK(parsed(storage_text(storage)).devices == storage.devices);
  CHECK_FALSE(parsed(head + mount + device).devices.front().busy_share);
  for (const char* share : {"1.01", "-0.1", "nan", "\"25%\"", "true"})
    CHECK_MESSAGE(
        refusal(head + mount + device + "busy_share = " + share + "\n").find("busy_share: ") != std::string::npos,
        share);
  const std::string bad =
      "busy_share = 0.25\n[device.probed]\nbusy_share = { value = 0.25, by = \"measured\", settled = 1 }";
  CHECK(refusal(head + mount + device + bad).find("settled: expected true or false") != std::string::npos);
}

TEST_CASE("storage.toml: power is read, written back, never assumed, and at least the idle one when active") {
  const std::string given = "idle_power = \"0.35W\"\nactive_power = \"6W\"\n";
  const Storage storage = parsed(head + mount + device + given);
  CHECK(storage.devices.front().idle_power_w == 0.35);
  CHECK(storage.devices.front().active_power_w == 6);
  CHECK(storage_text(storage).find(given) != std::string::npos);
  CHECK(parsed(storage_text(storage)).devices == storage.devices);
  const Device absent = parsed(head + mount + device).devices.front();
  CHECK_FALSE(absent.idle_power_w);
  CHECK_FALSE(absent.active_power_w);
  CHECK(parsed(head + mount + device + "idle_power = \"6W\"\nactive_power = \"6W\"\n").devices.size() == 1);
  CHECK(refusal(head + mount + device + "idle_power = \"7W\"\nactive_power = \"6W\"\n").find("idle_power is 7W") !=
        std::string::npos);
  for (const char* power : {"6", "\"6\"", "\"-1W\"", "\"1001kW\"", "true"})
    CHECK_MESSAGE(
        refusal(head + mount + device + "active_power = " + power + "\n").find("active_power: ") != std::string::npos,
        power);
}

TEST_CASE("storage.toml: a value that is not given has a default and says so") {
  const Storage storage = parsed(head + mount + device);
  const Device& a = storage.devices[0];
  CHECK(a.write_bytes_per_s > 0);
  CHECK_FALSE(a.provenance.contains("write_bandwidth"));
  CHECK(storage.mount_points[0].block_bytes == 4096);
  CHECK(storage.mount_points[0].persistent);
  CHECK_FALSE(parsed(head + mount + "filesystem = \"tmpfs\"\n" + device).mount_points[0].persistent);
  CHECK_FALSE(parsed(head + mount + "[[device]]\nname = \"a\"\nkind = \"ram\"\n").mount_points[0].persistent);
  CHECK(parsed(head + mount + "filesystem = \"lustre\"\n" + device).mount_points[0].visibility == Visibility::global);
}

TEST_CASE("storage.toml: a value edited by hand survives the next probe, and only that one") {
  Storage first = parsed(head + mount + device);
  const auto probe = [](Device& probed, double rate) {
    probed.read_bytes_per_s = probed.write_bytes_per_s = rate;
    probed.provenance["read_bandwidth"] =
        probed.provenance["write_bandwidth"] = {Origin::measured, "", Origin::measured, "", ""};
  };
  first.devices[0].provenance["kind"] = {Origin::inspected, "", Origin::inspected, "", ""};
  first.devices[0].provenance.erase("name");
  first.mount_points[0].provenance.clear();
  first.mount_points[0].provenance["path"] = {Origin::inspected, "", Origin::inspected, "", ""};
  probe(first.devices[0], 100 * static_cast<double>(MiB));
  std::string file = storage_text(first);

  const std::string written = "write_bandwidth = \"100MB/s\"\n";
  REQUIRE(file.find(written) != std::string::npos);
  file.replace(file.find(written), written.size(), "write_bandwidth = \"42MB/s\"\n");
  const Storage edited = parsed(file);
  CHECK(edited.devices[0].provenance.at("write_bandwidth").origin == Origin::config);
  CHECK(edited.devices[0].provenance.at("read_bandwidth").origin == Origin::measured);

  Storage second = first;
  probe(second.devices[0], 200 * static_cast<double>(MiB));
  const Storage merged = parsed(storage_text(merge_probe(edited, second)));
  CHECK(merged.devices[0].write_bytes_per_s == 42 * static_cast<double>(MiB));
  CHECK(merged.devices[0].read_bytes_per_s == 200 * static_cast<double>(MiB));
  const Provenance& kept = merged.devices[0].provenance.at("write_bandwidth");
  CHECK(kept.origin == Origin::config);
  CHECK(kept.probed_text == "\"200MB/s\"");  // what the probe found is still there to see
  CHECK(storage_text(merge_probe(merged, second)) == storage_text(merged));
}

TEST_CASE("storage.toml: a probe drops what it no longer finds, but nothing that was written by hand") {
  const Storage by_hand = parsed(head + mount + device);
  Storage probed = by_hand;
  probed.mount_points[0].path = "/mnt/b";
  probed.devices[0].name = probed.mount_points[0].device = "b";
  for (auto* provenance : {&probed.mount_points[0].provenance, &probed.devices[0].provenance})
    for (auto& [key, value] : *provenance) value.origin = Origin::inspected;
  CHECK(merge_probe(by_hand, probed).mount_points.size() == 2);
  const Storage other = merge_probe(probed, by_hand);
  CHECK(other.mount_points.size() == 1);
  CHECK(other.devices.size() == 1);
}

TEST_CASE("storage.toml: what a probe found a device to be made of follows the next probe, unless edited by hand") {
  Storage probed =
      parsed(head + mount + device + "[device.redundancy]\nscheme = \"raid1\"\nmembers = [\"x\", \"y\"]\n" +
             "[[device]]\nname = \"x\"\nkind = \"ssd\"\n[[device]]\nname = \"y\"\nkind = \"ssd\"\n");
  for (Device& each : probed.devices)
    for (auto& [key, value] : each.provenance) value.origin = Origin::inspected;
  for (auto& [key, value] : probed.mount_points[0].provenance) value.origin = Origin::inspected;
  const std::string text = storage_text(probed);
  CHECK(text.find("redundancy = { value = { scheme = \"raid1\", members = [\"x\", \"y\"] }, by = \"inspected\" }\n") !=
        std::string::npos);
  const Storage read = parsed(text);
  CHECK(storage_text(read) == text);
  CHECK(read.devices[0].provenance.at("redundancy").origin == Origin::inspected);

  Storage grown = probed;  // y was replaced by z
  grown.devices[0].redundancy->members = {"x", "z"};
  grown.devices[2].name = "z";
  Storage merged = parsed(storage_text(merge_probe(read, grown)));
  CHECK(merged.devices[0].redundancy->members == std::vector<std::string>{"x", "z"});
  CHECK(merged.find_device("y") == nullptr);

  const std::string members = "[device.redundancy]\nscheme = \"raid1\"\nmembers = [\"x\", \"y\"]";
  std::string edited = text;
  REQUIRE(edited.find(members) != std::string::npos);
  edited.replace(edited.find(members), members.size(),
                 "[device.redundancy]\nscheme = \"stripe\"\nmembers = [\"x\", \"y\"]");
  merged = parsed(storage_text(merge_probe(parsed(edited), grown)));
  CHECK(merged.devices[0].redundancy->scheme == RedundancyScheme::stripe);
  CHECK(merged.find_device("y") != nullptr);  // still a member
  const Provenance& kept = merged.devices[0].provenance.at("redundancy");
  CHECK(kept.origin == Origin::config);
  CHECK(kept.probed_text == "{ scheme = \"raid1\", members = [\"x\", \"z\"] }");

  Storage simple = probed;  // the array is gone, and with it its members
  simple.devices = {probed.devices[0]};
  simple.devices[0].redundancy.reset();
  simple.devices[0].provenance.erase("redundancy");
  CHECK(merge_probe(read, simple).devices.size() == 1);
  CHECK(refusal(head + mount + device + "[device.probed]\nredundancy = { value = 1, by = \"inspected\" }\n")
            .find("9:14: redundancy: expected { value =") != std::string::npos);
  CHECK(refusal(head + mount + device +
                "[device.probed.redundancy]\nvalue = { scheme = \"stripe\", members = [\"x\"] }\n" +
                "by = \"inspected\"\nhow = 1\n")
            .find("unknown key 'how'") != std::string::npos);
  CHECK(refusal(
            head + mount + device +
            "[device.probed]\nredundancy = { value = { scheme = \"raid1\", members = [\"x\"] }, by = \"inspected\" }\n")
            .find("at least 2 members") != std::string::npos);
}

TEST_CASE("storage.toml: an unknown key is refused with its place and the nearest known one") {
  const std::string message = refusal(head + mount + device + "write_bandwith = \"1GB/s\"\n");
  CHECK(message.find("storage.toml:8:1: unknown key 'write_bandwith'; did you mean 'write_bandwidth'?") == 0);
  CHECK(refusal(head + "mount = 1\n" + mount + device).find("unknown key 'mount'") != std::string::npos);
}

TEST_CASE("storage.toml: bad values are refused with their place") {
  const auto bad_device = [&](const std::string& line) { return refusal(head + mount + device + line + "\n"); };
  CHECK(bad_device("write_bandwidth = \"1GB\"").find("8:19: write_bandwidth") != std::string::npos);
  CHECK(bad_device("write_bandwidth = 5").find("expected a rate such as") != std::string::npos);
  CHECK(bad_device("write_bandwidth = \"-1GB/s\"").find("negative") != std::string::npos);
  CHECK(bad_device("write_bandwidth = \"0B/s\"").find("above 0") != std::string::npos);
  CHECK(bad_device("write_bandwidth = \"1e30GB/s\"").find("out of range") != std::string::npos);
  CHECK(bad_device("operation_latency = \"2d\"").find("out of range") != std::string::npos);
  CHECK(bad_device("max_iops = 0").find("out of range") != std::string::npos);
  CHECK(bad_device("max_iops = nan").find("expected a number") != std::string::npos);
  CHECK(bad_device("ber = 0.7").find("out of range") != std::string::npos);
  CHECK(bad_device("mttf = \"0s\"").find("out of range") != std::string::npos);
  CHECK(bad_device("sector_bits = 0").find("out of range") != std::string::npos);
  CHECK(bad_device("sector_bits = 8\necc_bits = 8").find("only 8 bits") != std::string::npos);
  CHECK(bad_device("kind2 = 1").find("unknown key") != std::string::npos);
  CHECK(refusal(head + mount + "[[device]]\nname = \"a\"\nkind = \"sdd\"\n").find("did you mean 'ssd'") !=
        std::string::npos);
  CHECK(refusal(head + mount + "block_size = 0\n" + device).find("out of range") != std::string::npos);
  CHECK(refusal(head + mount + "persistent = 1\n" + device).find("true or false") != std::string::npos);
  CHECK(refusal(head + "[[mount_point]]\npath = \"mnt\"\ndevice = \"a\"\n" + device).find("absolute") !=
        std::string::npos);
}

TEST_CASE("storage.toml: what does not fit together is refused") {
  CHECK(refusal(mount + device).find("expected schema") != std::string::npos);
  CHECK(refusal("schema = \"iosig.storage/3\"\n" + mount + device)
            .find("this is 'iosig.storage/3'; this iosig reads 'iosig.storage/2' and 'iosig.storage/1'") !=
        std::string::npos);
  CHECK(refusal(head + "policy = \"fast\"\n" + mount + device).find("expected a policy, job or paper") !=
        std::string::npos);
  CHECK(refusal(head + device).find("no [[mount_point]]; expected at least one, or a [[server]]") != std::string::npos);
  CHECK(refusal(head + mount).find("no [[device]] named 'a'") != std::string::npos);
  CHECK(refusal(head + mount + mount + device).find("described twice") != std::string::npos);
  CHECK(refusal(head + mount + device + device).find("described twice") != std::string::npos);
  CHECK(refusal(head + mount + device + "name = \"b\"").find("storage.toml:8") != std::string::npos);
  const std::string composite = "[[device]]\nname = \"r\"\nkind = \"composite\"\n[device.redundancy]\n";
  CHECK(refusal(head + mount + device + composite + "scheme = \"raid1\"\nmembers = [\"a\", \"r\"]\n")
            .find("member of itself") != std::string::npos);
  CHECK(
      refusal(head + mount + device + composite + "scheme = \"raid1\"\nmembers = [\"a\", \"x\"]\n").find("named 'x'") !=
      std::string::npos);
  CHECK(refusal(head + mount + device + composite + "scheme = \"raid5\"\nmembers = [\"a\", \"a\"]\n")
            .find("at least 3") != std::string::npos);
  CHECK(refusal(head + mount + device + composite + "scheme = \"mds\"\ndata = 4\n").find("mds needs data and parity") !=
        std::string::npos);
}

namespace {
const std::string server =
    "[[server]]\nname = \"h0\"\nclass = \"hdd\"\nread_startup = \"8ms\"\nread_bandwidth = \"100MB/s\"\n"
    "write_startup = \"9ms\"\nwrite_bandwidth = \"90MB/s\"\ncapacity = \"1TB\"\ntarget = \"ost3\"\n";
const std::string network = "[network]\nstartup = \"0.1ms\"\nbandwidth = \"117MB/s\"\n";
}  // namespace

TEST_CASE("storage.toml: servers and network are read, printed and read again") {
  const Storage read = parsed(head + server + network);  // a file system's servers need no mount point here
  REQUIRE(read.servers.size() == 1);
  CHECK(read.servers[0].name == "h0");
  CHECK(read.servers[0].server_class == "hdd");
  CHECK(read.servers[0].target == "ost3");
  CHECK(read.servers[0].read_startup_s == doctest::Approx(8e-3));
  CHECK(read.servers[0].write_startup_s == doctest::Approx(9e-3));
  CHECK(read.servers[0].read_bytes_per_s == 100.0 * MiB);
  CHECK(read.servers[0].write_bytes_per_s == 90.0 * MiB);
  CHECK(read.servers[0].capacity_bytes == TiB);
  REQUIRE(read.network.has_value());
  CHECK(read.network->startup_s == doctest::Approx(1e-4));
  CHECK(read.network->bytes_per_s == 117.0 * MiB);
  const Storage again = parsed(storage_text(read));
  CHECK(again.servers == read.servers);
  CHECK(again.network == read.network);
  CHECK(storage_text(again) == storage_text(read));

  const Storage inherits =
      parsed(head + mount + device + "[[server]]\nname = \"s\"\nclass = \"x\"\nmount_point = \"/mnt/a\"\n" +
             "[[server]]\nname = \"t\"\nclass = \"x\"\ndevice = \"a\"\n");
  CHECK(inherits.device_of(inherits.servers[0])->name == "a");
  CHECK(inherits.device_of(inherits.servers[1])->name == "a");
  CHECK(inherits.device_of(read.servers[0]) == nullptr);
  CHECK_FALSE(inherits.network.has_value());
}

TEST_CASE("storage.toml: servers that lack something, or do not fit, are refused with their place") {
  const auto without = [&](const std::string& line) {
    std::string text = server;
    const std::size_t at = text.find(line);
    REQUIRE(at != std::string::npos);
    text.erase(at, text.find('\n', at) + 1 - at);
    return refusal(head + mount + device + text);
  };
  CHECK(without("name = \"h0\"").find("8:1: a server without name") != std::string::npos);
  CHECK(without("class = ").find("8:1: h0: expected class") != std::string::npos);
  for (const char* key : {"read_startup", "read_bandwidth", "write_startup", "write_bandwidth"})
    CHECK(without(key).find(std::string("8:1: h0: expected ") + key + ", or the device or mount_point that has it") !=
          std::string::npos);
  const auto with = [&](const std::string& line) { return refusal(head + mount + device + server + line + "\n"); };
  CHECK(with("mount_point = \"/none\"").find("h0: there is no [[mount_point]] with the path '/none'") !=
        std::string::npos);
  CHECK(with("mount_point = \"mnt\"").find("not an absolute path") != std::string::npos);
  CHECK(with("device = \"none\"").find("no [[device]] named 'none'") != std::string::npos);
  CHECK(with("speed = 1").find("unknown key 'speed'") != std::string::npos);
  CHECK(with(server).find("the server 'h0' is described twice") != std::string::npos);
  CHECK(with("[[network]]\n").find("'network' is not a table; expected [network]") != std::string::npos);
  CHECK(with("[network]\nbandwidth = \"0B/s\"").find("bandwidth: ") != std::string::npos);
  CHECK(with("[network]\nstartup = 1").find("expected a time such as") != std::string::npos);
  CHECK(with("[network]\nlatency = \"1ms\"").find("unknown key 'latency'") != std::string::npos);
  std::string halted = server;
  halted.replace(halted.find("100MB/s"), 7, "0B/s");
  CHECK(refusal(head + halted).find("read_bandwidth: ") != std::string::npos);
}

TEST_CASE(
    "storage.toml: a probe keeps the servers and what they name; its network replaces one that it measured before") {
  Storage current =
      parsed(head + mount + device + "[[server]]\nname = \"s\"\nclass = \"x\"\nmount_point = \"/mnt/a\"\n" + network);
  for (auto* known : {&current.mount_points[0].provenance, &current.devices[0].provenance})
    for (auto& [key, value] : *known) value.origin = Origin::inspected;
  Storage update;  // the mount is gone now
  const Storage kept = merge_probe(current, update);
  CHECK(kept.servers == current.servers);
  CHECK(kept.mount_points.size() == 1);
  CHECK(kept.devices.size() == 1);
  CHECK(kept.network == current.network);

  update.network = Network{2e-3,
                           5e6,
                           {{"startup", {Origin::measured, {}, Origin::measured, "1ms", "3ms", true}},
                            {"bandwidth", {Origin::measured, {}, Origin::measured, {}, {}, true}}}};
  const Storage by_hand = merge_probe(current, update);  // both values were set by hand
  CHECK(by_hand.network->startup_s == doctest::Approx(1e-4));
  CHECK(storage_text(by_hand).find(
            "[network.probed]\nstartup = { value = \"2ms\", by = \"measured\", low = \"1ms\", high = \"3ms\" }\n") !=
        std::string::npos);
  current.network->provenance.erase("startup");
  CHECK(merge_probe(current, update).network->startup_s == doctest::Approx(2e-3));
  CHECK(merge_probe(current, update).network->bytes_per_s == 117.0 * MiB);
  const Storage measured = parsed(storage_text(merge_probe(parsed(head + server), update)));
  CHECK(measured.network->provenance.at("startup").origin == Origin::measured);
  update.network->startup_s = 4e-3;
  CHECK(merge_probe(measured, update).network->startup_s == doctest::Approx(4e-3));
}

TEST_CASE("storage.toml: no cut of a good file crashes the reader") {
  const std::string whole = *read_file(IOSIG_TEST_DATA "/paper-table2.toml");
  for (std::size_t size = 0; size < whole.size(); size += 7) (void)parse_storage(whole.substr(0, size), "cut");
}

TEST_CASE("rules: the first glob that matches gives the signature") {
  const auto rules = parse_rules(
      "schema = \"iosig.rules/1\"\n[sigdef]\nscratch = \"temp random\"\n"
      "[[rule]]\npath = \"/data/run*/out.bin\"\nsig = \"scratch totalsize(6GB)\"\n"
      "[[rule]]\npath = \"*.log\"\nsig = \"sequential persist\"\n",
      "/etc/rules.toml");
  REQUIRE_MESSAGE(rules.has_value(), rules.error().message);
  const Rule* rule = match_rule(*rules, "/data/run7/out.bin");
  REQUIRE(rule != nullptr);
  CHECK(rule->signature.lifetime == Lifetime::temp);
  CHECK(rule->signature.total_bytes == 6 * GiB);
  CHECK(match_rule(*rules, "/data/run7/sub/out.bin") == nullptr);  // '*' does not cross directories
  CHECK(match_rule(*rules, "/etc/a.log") != nullptr);              // relative to the rules file
  CHECK(match_rule(*rules, "/var/a.log") == nullptr);
}

TEST_CASE("rules: a file of reads lies where the rules file lies, also if a definition names it") {
  const auto rules = parse_rules(
      "schema = \"iosig.rules/1\"\n[sigdef]\nepoch = \"order(orders/epoch.order)\"\n"
      "[[rule]]\npath = \"/data/a\"\nsig = \"epoch\"\n"
      "[[rule]]\npath = \"/data/b\"\nsig = \"pattern(/models/b.reads)\"\n",
      "/etc/rules.toml");
  REQUIRE_MESSAGE(rules.has_value(), rules.error().message);
  CHECK(match_rule(*rules, "/data/a")->signature.reads ==
        DeclaredReads{DeclaredReads::Form::order, "/etc/orders/epoch.order"});
  CHECK(match_rule(*rules, "/data/b")->signature.reads ==
        DeclaredReads{DeclaredReads::Form::pattern, "/models/b.reads"});
}

TEST_CASE("rules: the directory of the rules file may have any name, and matches itself alone") {
  for (const char* directory : {"/data/run[1]", "/data/a*", "/data/a?", "/data/back\\slash"}) {
    const auto rules = parse_rules(
        "schema = \"iosig.rules/1\"\n[[rule]]\npath = \"out*\"\nsig = \"temp\"\n"
        "[[rule]]\npath = \"below/in\"\nsig = \"order(epoch.order)\"\n",
        std::string(directory) + "/rules.toml");
    REQUIRE_MESSAGE(rules.has_value(), rules.error().message);
    CHECK(match_rule(*rules, std::string(directory) + "/out1") != nullptr);
    CHECK(match_rule(*rules, std::string(directory) + "/below/in")->signature.reads->file ==
          std::string(directory) + "/epoch.order");
    for (const char* other : {"/data/run1/out1", "/data/ab/out1"}) CHECK(match_rule(*rules, other) == nullptr);
  }
}

TEST_CASE("rules: errors name file, line and column") {
  const auto refused =
      parse_rules("schema = \"iosig.rules/1\"\n[[rule]]\npath = \"/a\"\nsig = \"randm\"\n", "rules.toml");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("rules.toml:4:7: sig:1:1: error: unknown parameter 'randm'") == 0);
  CHECK_FALSE(parse_rules("", "r"));
  CHECK_FALSE(parse_rules("schema = \"iosig.rules/1\"\n", "r"));
  CHECK_FALSE(parse_rules("schema = \"iosig.rules/1\"\n[[rule]]\npath = \"/a\"\n", "r"));
  CHECK_FALSE(parse_rules("schema = \"iosig.rules/1\"\n[[rule]]\npath = \"/a\"\nsig = \"temp\"\nfoo = 1\n", "r"));
}

TEST_CASE("storage.toml: text that would overflow a stack is refused, with its place") {
  std::string dots = "a";
  for (int i = 0; i < 200'000; ++i) dots += ".a";
  CHECK(refusal(head + dots + " = 1\n") == "storage.toml:2:130: more than 64 dots in one line: nested too deep");
  CHECK(refusal(head + "x = " + std::string(100'000, '[')).starts_with("storage.toml:2:"));
  const std::string quoted_dots = "transport = \"" + std::string(200, '.') + "\"  # " + std::string(200, '.') + "\n";
  CHECK(parsed(head + mount + device + quoted_dots).devices.size() == 1);
}

TEST_CASE("storage.toml: copies that share a device are refused, stripes over one may") {
  const auto composite = [](const std::string& name, const std::string& scheme, const std::string& members) {
    return "[[device]]\nname = \"" + name + "\"\nkind = \"composite\"\n[device.redundancy]\nscheme = \"" + scheme +
           "\"\nmembers = [" + members + "]\n";
  };
  std::string disks;
  for (const char* name : {"d1", "d2"}) disks += fmt::format("[[device]]\nname = \"{}\"\nkind = \"ssd\"\n", name);
  const std::string twice = head + mount + composite("a", "raid1", "\"d1\", \"d1\"") + disks;
  CHECK(refusal(twice).find("the device 'a' has 'd1' in two of its members") != std::string::npos);
  const std::string stripes = composite("s1", "stripe", "\"d1\", \"d2\"") + composite("s2", "stripe", "\"d2\", \"d1\"");
  CHECK(refusal(head + mount + composite("a", "raid1", "\"s1\", \"s2\"") + stripes + disks).find("in two of its") !=
        std::string::npos);
  CHECK(parsed(head + mount + composite("a", "stripe", "\"s1\", \"s2\"") + stripes + disks).devices.size() == 5);
}

TEST_CASE("storage.toml: composites of composites are bounded in depth and in number") {
  const auto composite = [](const std::string& name, const std::string& members) {
    return "[[device]]\nname = \"" + name +
           "\"\nkind = \"composite\"\n[device.redundancy]\nscheme = \"stripe\"\nmembers = [" + members + "]\n";
  };
  std::string deep = head + mount + composite("a", "\"c1\", \"c1\"");  // 2^40 members when written out
  for (int i = 1; i < 40; ++i) {
    const std::string next = "\"c" + std::to_string(i + 1) + "\"";
    deep += composite("c" + std::to_string(i), next + ", " + next);
  }
  deep += "[[device]]\nname = \"c40\"\nkind = \"ssd\"\n";
  CHECK(refusal(deep).find("more than 8 deep") != std::string::npos);

  const auto hundred = [](const std::string& name) {
    std::string members;
    for (int i = 0; i < 100; ++i) members += "\"" + name + "\",";
    return members;
  };
  const std::string wide = head + mount + composite("a", hundred("b")) + composite("b", hundred("c")) +
                           composite("c", hundred("d")) + "[[device]]\nname = \"d\"\nkind = \"ssd\"\n";
  CHECK(refusal(wide).find("more than 10000 devices") != std::string::npos);
  CHECK(refusal(head + mount + composite("a", "\"b\", \"b\"") + composite("b", "\"a\", \"a\"")) ==
        "storage.toml:16:12: the device 'a' is a member of itself");
}

TEST_CASE("storage.toml: letters beyond ASCII stand in quotes, and elsewhere they are refused with their place") {
  CHECK(refusal(head + "\xc3\xa9 = 1\n") ==
        "storage.toml:2:1: a letter beyond ASCII stands outside quotes; expected it in \"...\"");
  CHECK(refusal(head + mount + "free = \xef\xbb\xaf\n").starts_with("storage.toml:5:8: "));
  CHECK(parsed(head + mount + device + "transport = \"\xc3\xa9\" # \xc3\xa9\n").devices[0].transport == "\xc3\xa9");
  CHECK(refusal(head + "a = 0b\"\xef\xbb\xaf\"\n") == "storage.toml:2:7: a quote in the middle of a word");
  CHECK(refusal(head + "a = \"\\x\xef\xb3\xbf\"\n") ==
        "storage.toml:2:6: a backslash that begins no escape of TOML; a backslash itself is written \\\\");
  CHECK(parsed(head + mount + device + "transport = \"\"\"\\u00e9\\\\ \\  \n  x\"\"\"\n").devices[0].transport ==
        "\xc3\xa9\\ x");
  CHECK(refusal(head + "a = \"\"\"\\ \n\n \xc3\xa9\"\"\"\n")
            .starts_with("storage.toml:4:2: a letter beyond ASCII begins"));
  CHECK(refusal("[\x1d" + head).starts_with("storage.toml:1:2: "));  // an assertion of toml++ fails on it
}
