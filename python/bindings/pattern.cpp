#include "pattern.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "indexed_pattern.h"
#include "iosig/base/text.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/pattern_text.h"
#include "iosig/format/vectors_text.h"
#include "iosig/model/pattern_cursor.h"

using namespace nanobind::literals;

namespace iosig::python {
namespace {

using Positions = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// ---- arrays -------------------------------------------------------------------------------------------------------

/// `count` elements from `first` on.
nb::object run_of(const IndexedPattern& of, std::uint64_t first, std::uint64_t count) {
  const std::uint32_t columns = of.pattern.columns;
  const NewVectors vectors(count, columns);
  PatternCursor cursor(of.index, first);
  in_stretches(count, [&](std::uint64_t from, std::uint64_t end) {
    for (std::uint64_t n = from; n < end; ++n) cursor.next({vectors.data + n * columns, columns});
  });
  return vectors.array;
}

/// The elements at position(0), .., position(count - 1).
template <class Position>
nb::object elements_of(const IndexedPattern& of, std::uint64_t count, Position position) {
  const std::uint32_t columns = of.pattern.columns;
  const NewVectors vectors(count, columns);
  in_stretches(count, [&](std::uint64_t from, std::uint64_t end) {
    for (std::uint64_t n = from; n < end; ++n) of.index.element(position(n), {vectors.data + n * columns, columns});
  });
  return vectors.array;
}

/// A position as Python counts: negative ones from the end.
std::uint64_t checked_position(const IndexedPattern& of, std::int64_t position) {
  const auto count = static_cast<std::int64_t>(of.pattern.count());
  if (position < -count || position >= count)
    raise_python(PyExc_IndexError, fmt::format("position {} is not in a pattern of {} vectors", position, count));
  return static_cast<std::uint64_t>(position < 0 ? position + count : position);
}

nb::object element_at(const IndexedPattern& of, std::int64_t position) {
  std::array<std::int64_t, most_columns> vector{};
  of.index.element(checked_position(of, position), vector);
  if (of.pattern.columns == 1) return nb::int_(vector[0]);
  nb::list values;
  for (std::uint32_t column = 0; column < of.pattern.columns; ++column) values.append(vector[column]);
  return nb::tuple(values);
}

nb::object slice_of(const IndexedPattern& of, const nb::slice& slice) {
  const auto [start, stop, step, length] = slice.compute(of.pattern.count());
  const auto first = static_cast<std::int64_t>(start), by = static_cast<std::int64_t>(step);
  if (by == 1) return run_of(of, length == 0 ? 0 : start, length);
  return elements_of(of, length, [&](std::uint64_t n) {
    return static_cast<std::uint64_t>(first + static_cast<std::int64_t>(n) * by);
  });
}

nb::object vectors_at(const IndexedPattern& of, const Positions& positions) {
  for (std::size_t n = 0; n < positions.size(); ++n) (void)checked_position(of, positions.data()[n]);
  return elements_of(of, positions.size(), [&](std::uint64_t n) {
    const std::int64_t position = positions.data()[n];
    return static_cast<std::uint64_t>(position < 0 ? position + static_cast<std::int64_t>(of.pattern.count())
                                                   : position);
  });
}

// ---- forms --------------------------------------------------------------------------------------------

nb::object predicted_by(const IndexedPattern& of, std::int64_t count) {
  return predictions(count, of.pattern.columns, [&](std::span<std::int64_t> out) {
    const std::vector<std::int64_t> next = predicted(of.pattern, static_cast<std::size_t>(count));
    std::ranges::copy(next, out.begin());
    return next.size() / of.pattern.columns;
  });
}

std::string json_text(const Pattern& pattern) {
  nlohmann::ordered_json whole = {{"schema", pattern_schema}};
  whole.update(pattern_json(pattern));
  return whole.dump();
}

nb::bytes binary_of(const Pattern& pattern) {
  const std::vector<std::uint8_t> bytes = pattern_bytes(pattern);
  return nb::bytes(bytes.data(), bytes.size());
}

Pattern read_binary(const nb::bytes& bytes, const std::string& source) {
  return value_or_raise(pattern_from_bytes({static_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, source));
}

nb::list follows_of(const Pattern& pattern) {
  nb::list follows;
  for (std::uint32_t column = 0; column < pattern.columns; ++column) {
    const int source = pattern.follows[column];
    follows.append(source < 0 ? nb::object(nb::none()) : nb::object(nb::int_(source)));
  }
  return follows;
}

std::string described(const Pattern& pattern) {
  return fmt::format("<iosig.Pattern: {} vectors of {} column{}, {} term{}, {} bytes>", pattern.count(),
                     pattern.columns, pattern.columns == 1 ? "" : "s", pattern.terms.size(),
                     pattern.terms.size() == 1 ? "" : "s", pattern_bytes(pattern).size());
}

}  // namespace

std::vector<std::string> names_of(const std::string& columns) {
  if (columns.empty()) return {};
  auto names = parse_columns(columns);
  if (!names) raise_python(PyExc_ValueError, "columns: " + names.error().message);
  return *std::move(names);
}

void bind_pattern(nb::module_& module) {
  nb::class_<IndexedPattern>(module, "Pattern")
      .def_prop_ro("count", [](const IndexedPattern& of) { return of.pattern.count(); })
      .def_prop_ro("columns", [](const IndexedPattern& of) { return of.pattern.columns; })
      .def_prop_ro("names", [](const IndexedPattern& of) { return column_names(of.pattern); })
      .def_prop_ro("terms", [](const IndexedPattern& of) { return of.pattern.terms.size(); })
      .def_prop_ro("exceptions", [](const IndexedPattern& of) { return of.pattern.exception_positions.size(); })
      .def_prop_ro("bytes", [](const IndexedPattern& of) { return pattern_bytes(of.pattern).size(); })
      .def_prop_ro("follows", [](const IndexedPattern& of) { return follows_of(of.pattern); })
      .def("__len__", [](const IndexedPattern& of) { return of.pattern.count(); })
      .def("__getitem__", element_at, "position"_a)
      .def("__getitem__", slice_of, "positions"_a)
      .def("__getitem__", vectors_at, "positions"_a.noconvert())
      .def(
          "__eq__", [](const IndexedPattern& of, const IndexedPattern& other) { return of.pattern == other.pattern; },
          nb::is_operator())
      .def("__hash__",
           [](const IndexedPattern& of) {
             const std::vector<std::uint8_t> bytes = pattern_bytes(of.pattern);
             return static_cast<Py_hash_t>(fnv1a({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) >> 1);
           })
      .def("__repr__", [](const IndexedPattern& of) { return described(of.pattern); })
      .def("__str__", [](const IndexedPattern& of) { return pattern_text(of.pattern, column_names(of.pattern)); })
      .def("expand", [](const IndexedPattern& of) { return run_of(of, 0, of.pattern.count()); })
      .def("predict", predicted_by, "count"_a)
      .def(
          "text",
          [](const IndexedPattern& of, const std::string& columns) {
            const auto names = names_in(of.pattern, names_of(columns));
            if (!names) raise_python(PyExc_ValueError, "columns: " + names.error().message);
            return pattern_text(of.pattern, *names);
          },
          "columns"_a = "")
      .def("to_json", [](const IndexedPattern& of) { return json_text(of.pattern); })
      .def_static(
          "from_json",
          [](const std::string& text, const std::string& source) {
            return made(value_or_raise(pattern_from_json(text, source)));
          },
          "text"_a, "source"_a = "description")
      .def("to_bytes", [](const IndexedPattern& of) { return binary_of(of.pattern); })
      .def_static(
          "from_bytes",
          [](const nb::bytes& bytes, const std::string& source) { return made(read_binary(bytes, source)); }, "data"_a,
          "source"_a = "description")
      .def("__getstate__", [](const IndexedPattern& of) { return binary_of(of.pattern); })
      .def("__setstate__", [](IndexedPattern* at, const nb::bytes& bytes) {
        new (at) IndexedPattern(read_binary(bytes, "pickled pattern"));
      });
  module.def("parse_columns", names_of, "text"_a);
}

}  // namespace iosig::python
