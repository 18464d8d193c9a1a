#include <doctest/doctest.h>

#include <atomic>
#include <new>

#include "iosig/base/parallel.h"

using namespace iosig;

TEST_CASE("parallel: what the work throws on any thread is thrown to the caller, when all threads have ended") {
  for (const unsigned threads : {1U, 2U, 8U}) {
    std::atomic<int> at_work = 0;
    CHECK_THROWS_AS(for_each_in_parallel(100, threads,
                                         [&](std::size_t n) {
                                           ++at_work;
                                           if (n % 7 == 3) {
                                             --at_work;
                                             throw std::bad_alloc();
                                           }
                                           --at_work;
                                         }),
                    std::bad_alloc);
    CHECK(at_work == 0);
  }
}
