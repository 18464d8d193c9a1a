#include <doctest/doctest.h>

#include <string>

#include "iosig/trace/open_places.h"

using namespace iosig;
using namespace iosig::trace;

TEST_CASE("open places: an address belongs to the file that was loaded there last, in that file's own counting") {
  OpenPlaces found;
  OpenPlaceReader reader(found);
  reader.add_object("1000\t2000\t1000\t900\t5\t");
  reader.add_object("5000\t6000\t4000\t700\t6\t/lib/own.so");
  reader.add_place("3\t1801\t5001");
  reader.add_object("5000\t6000\t5000\t800\t7\t/lib/other.so");  // in the place of the one that was unloaded
  reader.add_place("4\t5011");
  REQUIRE(found.files.size() == 3);
  CHECK(found.files[0].path.empty());
  REQUIRE(found.places.size() == 2);
  CHECK(found.places[0].path == 3);
  CHECK(found.places[0].callers == std::vector<CodeAddress>{{0, 0x800}, {1, 0x1000}});  // one byte before the return
  CHECK(found.places[1].callers == std::vector<CodeAddress>{{2, 0x10}});
}

TEST_CASE("open places: facts that are not sound are left out, and a place counts once") {
  OpenPlaces found;
  OpenPlaceReader reader(found);
  for (const char* fact : {"", "1\t2", "x\t2000\t0\t1\t1\t", "1000\t2000\t0\t1\t1\trelative", "1000\t2000\t0\t-1\t1\t"})
    reader.add_object(fact);
  reader.add_place("1\t1801");  // nothing is loaded there
  CHECK(found.files.empty());
  reader.add_object("1000\t2000\t0\t1\t1\t/program");
  for (const char* fact : {"", "\t", "x\t1801", "1\tx", "1\t1801\t", "1\t0", "1\t1000", "1\t2001"})
    reader.add_place(fact);
  CHECK(found.places.empty());
  for (int n = 0; n < 3; ++n) reader.add_place("1\t1801\t2000");
  REQUIRE(found.places.size() == 1);
  CHECK(found.places[0].callers.size() == 2);
}
