// What the bindings of patterns share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "iosig/model/pattern.h"
#include "raise.h"

namespace iosig::python {

namespace nb = nanobind;

/// A vector for each row. iosig.patterns makes such arrays of what it is given.
using Vectors = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// A pattern and what its elements are found by.
struct IndexedPattern {
  explicit IndexedPattern(Pattern described) : pattern(std::move(described)), index(pattern) {}
  IndexedPattern(const IndexedPattern&) = delete;
  IndexedPattern& operator=(const IndexedPattern&) = delete;

  const Pattern pattern;
  const PatternIndex index;
};
using Made = std::unique_ptr<IndexedPattern>;

inline Made made(Pattern pattern) { return std::make_unique<IndexedPattern>(std::move(pattern)); }

/// Calls work(first, end) for stretches of 0 .. count without the GIL; ^C between two of them raises.
template <class Work>
void in_batches(std::uint64_t count, Work work) {
  constexpr std::uint64_t stretch = 1 << 20;
  for (std::uint64_t first = 0; first < count; first += stretch) {
    {
      const nb::gil_scoped_release others_may_run;
      work(first, std::min(count, first + stretch));
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

/// An array for `count` vectors, to be filled at `data`; of one dimension where there is one column.
struct NewVectors {
  NewVectors(std::uint64_t count, std::uint32_t columns) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    const nb::object shape = columns == 1 ? nb::object(nb::int_(count)) : nb::object(nb::make_tuple(count, columns));
    array = numpy.attr("empty")(shape, numpy.attr("int64"));
    data = nb::cast<nb::ndarray<std::int64_t, nb::c_contig>>(array).data();
  }

  nb::object array;
  std::int64_t* data = nullptr;
};

/// Up to `count` vectors of which predict(out), called without the GIL, says how many it has filled in.
template <class Predict>
nb::object predictions(std::int64_t count, std::uint32_t columns, Predict predict) {
  if (count < 0) raise_python(PyExc_ValueError, fmt::format("count: expected 0 or more, got {}", count));
  const NewVectors vectors(static_cast<std::uint64_t>(count), columns);
  std::size_t found = 0;
  {
    const nb::gil_scoped_release others_may_run;
    found = predict(std::span(vectors.data, static_cast<std::size_t>(count) * columns));
  }
  return vectors.array[nb::slice(nb::int_(0), nb::int_(found), nb::int_(1))];
}

/// Names of columns as `iosig pattern --columns` has them, "" for none, or a sequence of such names.
std::vector<std::string> names_of(const nb::object& columns);

/// Python's integer `value`; `name` is for messages. TypeError for what is none, ValueError for what needs more bits.
std::int64_t integer_of(const nb::object& value, const char* name);

inline std::string vectors_text(std::uint64_t count) {
  return fmt::format("{} vector{}", count, count == 1 ? "" : "s");
}

}  // namespace iosig::python
