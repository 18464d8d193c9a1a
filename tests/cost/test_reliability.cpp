#include <doctest/doctest.h>

#include <cmath>

#include "iosig/base/units.h"
#include "iosig/cost/reliability.h"
#include "structures.h"

using namespace iosig;

namespace {
Storage raid(RedundancyScheme scheme, std::size_t members, double ber = 0) {
  Storage storage;
  Device composite = assumed_device(DeviceKind::composite);
  composite.name = "array";
  composite.redundancy = Redundancy{.scheme = scheme, .members = {}};
  for (std::size_t i = 0; i < members; ++i) {
    Device disk = assumed_device(DeviceKind::ssd);
    disk.name = "disk" + std::to_string(i);
    disk.mttf_s = 10 * year_s;
    disk.bit_error_rate = ber;
    disk.sector_bits = 512;
    disk.ecc_bits = 2;
    composite.redundancy->members.push_back(disk.name);
    storage.devices.push_back(disk);
  }
  storage.devices.push_back(composite);
  return storage;
}

double years(const Storage& storage, std::uint64_t bytes) {
  return *mttdl_s(storage, storage.devices.back(), bytes) / year_s;
}
}  // namespace

TEST_CASE("Eq. 1: the paper's section 7.4: BER 1e-6, 512-bit sectors, 2 correctable give 4.36e-14") {
  CHECK(uncorrectable_bit_error_rate(1e-6, 512, 2) == doctest::Approx(4.36e-14).epsilon(0.005));
}

TEST_CASE("Eq. 1: without correction the sum is the chance of any error, 1 - (1 - BER)^N, over N") {
  for (const double ber : {1e-12, 1e-6, 1e-3, 0.3})
    CHECK(uncorrectable_bit_error_rate(ber, 512, 0) == doctest::Approx(-std::expm1(512 * std::log1p(-ber)) / 512));
}

TEST_CASE("Eq. 1: the first term rules small rates: C(N, E+1) BER^(E+1)") {
  // C(4096, 3) = 4096 * 4095 * 4094 / 6
  const double first = 4096.0 * 4095 * 4094 / 6 * 1e-45;
  CHECK(uncorrectable_bit_error_rate(1e-15, 4096, 2) == doctest::Approx(first / 4094).epsilon(1e-9));
  CHECK(uncorrectable_bit_error_rate(0, 512, 2) == 0);
}

TEST_CASE("Eq. 2: without bit errors a mirror lasts mu / (2 lambda^2)") {
  // MTTF 10 years = 3650 days, MTTR 1 day: 3650^2 / 2 days
  CHECK(mds_mttdl_s(1, 1, 3650 * day_s, day_s, 0, 1) == doctest::Approx(3650.0 * 3650 / 2 * day_s));
}

TEST_CASE("Eq. 2: the paper's Fig. 12: 1 TB lasts 13 years on RAID 1 and 15 months on RAID 5 (4+1)") {
  CHECK(years(raid(RedundancyScheme::raid1, 2, 1e-6), TiB) == doctest::Approx(13.0).epsilon(0.01));
  CHECK(12 * years(raid(RedundancyScheme::raid5, 5, 1e-6), TiB) == doctest::Approx(15.6).epsilon(0.01));
  CHECK(years(raid(RedundancyScheme::raid1, 2, 1e-6), GiB) > 100);
}

TEST_CASE("reliability: raid10 is mirrors side by side: each holds its share, any one's loss counts") {
  const double mirror = years(raid(RedundancyScheme::raid1, 2, 1e-6), TiB / 2);
  CHECK(years(raid(RedundancyScheme::raid10, 4, 1e-6), TiB) == doctest::Approx(mirror / 2));
}

TEST_CASE("reliability: more parity and more replicas last longer, more data shorter") {
  CHECK(years(raid(RedundancyScheme::raid6, 6, 1e-6), TiB) > years(raid(RedundancyScheme::raid5, 6, 1e-6), TiB));
  CHECK(years(raid(RedundancyScheme::replica, 3, 1e-6), TiB) > years(raid(RedundancyScheme::replica, 2, 1e-6), TiB));
  CHECK(years(raid(RedundancyScheme::raid1, 2, 1e-6), TiB) < years(raid(RedundancyScheme::raid1, 2, 1e-6), GiB));
}

TEST_CASE("reliability: one simple device, a stripe and members of unknown life are never reliable") {
  Storage storage = raid(RedundancyScheme::stripe, 4);
  CHECK(mttdl_s(storage, storage.devices.back(), GiB).error().kind == ErrorKind::infeasible);
  CHECK_FALSE(mttdl_s(storage, storage.devices.front(), GiB));
  storage = raid(RedundancyScheme::raid1, 2);
  storage.devices[0].mttf_s.reset();
  CHECK(mttdl_s(storage, storage.devices.back(), GiB).error().message.find("'disk0'") != std::string::npos);
}

TEST_CASE("reliability: of unlike members the chain knows each, Eq. 2 the worst") {
  Storage storage = raid(RedundancyScheme::raid1, 2);
  storage.devices[1].mttf_s = year_s;
  CHECK(years(storage, GiB) == doctest::Approx(10 * 365.0 / 2).epsilon(0.005));  // 3650 days * 365 days / 2 days
  CHECK(*eq2_mttdl_s(storage, storage.devices.back(), GiB) / year_s == doctest::Approx(365.0 / 2));
}

TEST_CASE("reliability: a composite whose members are not named is one wherever it stands") {
  Storage storage;
  for (const char* name : {"a", "b"}) {
    Device raid5 = assumed_device(DeviceKind::composite);
    raid5.name = name;
    raid5.mttf_s = 10 * year_s;  // of each of its four
    raid5.redundancy = Redundancy{.scheme = RedundancyScheme::raid5, .data = 3, .parity = 1, .members = {}};
    storage.devices.push_back(raid5);
  }
  const double alone = years(storage, GiB);
  Device mirror = assumed_device(DeviceKind::composite);
  mirror.name = "mirror";
  mirror.redundancy = Redundancy{.scheme = RedundancyScheme::raid1, .members = {"a", "b"}};
  storage.devices.push_back(mirror);
  CHECK(years(storage, GiB) == doctest::Approx(alone * alone * 365 / 2).epsilon(0.01));  // a day to mend either
}

TEST_CASE("availability: the exponential law") {
  CHECK(loss_probability(100, 100) == doctest::Approx(1 - std::exp(-1)));
  CHECK(loss_probability(1e18, 1) == doctest::Approx(1e-18));  // no digits lost
}
