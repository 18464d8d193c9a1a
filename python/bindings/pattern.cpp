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
  in_batches(count, [&](std::uint64_t from, std::uint64_t end) {
    for (std::uint64_t n = from; n < end; ++n) cursor.next({vectors.data + n * columns, columns});
  });
  return vectors.array;
}

/// The elements at position(0), .., position(count - 1).
template <class Position>
nb::object elements_of(const IndexedPattern& of, std::uint64_t count, Position position) {
  const std::uint32_t columns = of.pattern.columns;
  const NewVectors vectors(count, columns);
  in_batches(count, [&](std::uint64_t from, std::uint64_t end) {
    for (std::uint64_t n = from; n < end; ++n) of.index.element(position(n), {vectors.data + n * columns, columns});
  });
  return vectors.array;
}

/// A position as Python counts: negative ones from the end.
std::uint64_t checked_position(const IndexedPattern& of, std::int64_t position) {
  const auto count = static_cast<std::int64_t>(of.pattern.count());
  if (position < -count || position >= count)
    raise_python(PyExc_IndexError,
                 fmt::format("position {} is not in a pattern of {}", position, vectors_text(of.pattern.count())));
  return static_cast<std::uint64_t>(position < 0 ? position + count : position);
}

nb::object element_at(const IndexedPattern& of, std::int64_t position) {
  std::array<std::int64_t, max_columns> vector{};
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

/// What `positions` selects that are no array of int64: other integers, or a mask.
nb::object vectors_by(const IndexedPattern& of, const nb::object& positions) {
  const auto refuse = [](const std::string& got) {
    raise_python(PyExc_TypeError,
                 "position: expected an integer, a slice, or one dimension of integers or of a mask, got " + got);
  };
  const auto outside = [&](const nb::object& position) {
    raise_python(PyExc_IndexError, fmt::format("position {} is not in a pattern of {}", nb::repr(position).c_str(),
                                               vectors_text(of.pattern.count())));
  };
  if (const nb::object number = nb::steal(PyNumber_Index(positions.ptr())); number.is_valid()) {
    int overflow = 0;
    const std::int64_t position = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    if (overflow != 0) outside(number);
    return element_at(of, position);
  }
  PyErr_Clear();
  if (nb::isinstance<nb::tuple>(positions)) refuse("a tuple");
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = numpy.attr("asarray")(positions);
  const auto kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
  const auto dimensions = nb::cast<std::int64_t>(array.attr("ndim"));
  const auto size = nb::cast<std::uint64_t>(array.attr("size"));
  if (dimensions != 1) refuse(fmt::format("{} dimensions", dimensions));
  if (kind == "b") {
    if (size != of.pattern.count())
      raise_python(PyExc_IndexError,
                   fmt::format("a mask of {} for a pattern of {}", size, vectors_text(of.pattern.count())));
    array = numpy.attr("flatnonzero")(array);
  } else if (kind == "u" && size > 0) {
    if (nb::object largest = nb::int_(array.attr("max")()); nb::cast<std::uint64_t>(largest) > INT64_MAX)
      outside(largest);
  } else if (kind != "i" && size > 0) {
    const nb::object type = array.attr("dtype").attr("name");
    refuse(nb::cast<std::string>(type));
  }
  return vectors_at(of, nb::cast<Positions>(numpy.attr("ascontiguousarray")(array, numpy.attr("int64"))));
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
  return fmt::format("<iosig.Pattern: {} of {} column{}, {} term{}, {} bytes>", vectors_text(pattern.count()),
                     pattern.columns, pattern.columns == 1 ? "" : "s", pattern.terms.size(),
                     pattern.terms.size() == 1 ? "" : "s", pattern_bytes(pattern).size());
}

/// As NumPy has it of what `expand` gives.
nb::tuple shape_of(const Pattern& pattern) {
  if (pattern.columns == 1) return nb::make_tuple(pattern.count());
  return nb::make_tuple(pattern.count(), pattern.columns);
}

}  // namespace

std::vector<std::string> names_of(const nb::object& columns) {
  std::string text;
  if (nb::isinstance<nb::str>(columns)) {
    text = nb::cast<std::string>(columns);
  } else {
    const auto refuse = [&] {
      raise_python(PyExc_TypeError,
                   fmt::format("columns: expected names as 'logical,length' or ['logical', 'length'], got {}",
                               nb::repr(columns).c_str()));
    };
    if (!nb::isinstance<nb::list>(columns) && !nb::isinstance<nb::tuple>(columns)) refuse();
    for (const nb::handle name : columns) {
      if (!nb::isinstance<nb::str>(name)) refuse();
      text += (text.empty() ? "" : ",") + nb::cast<std::string>(name);
    }
  }
  if (text.empty()) return {};
  auto names = parse_columns(text);
  if (!names) raise_python(PyExc_ValueError, "columns: " + names.error().message);
  return *std::move(names);
}

std::int64_t integer_of(const nb::object& value, const char* name) {
  const nb::object number = nb::steal(PyNumber_Index(value.ptr()));
  if (!number.is_valid()) {
    PyErr_Clear();
    raise_python(PyExc_TypeError, fmt::format("{}: expected an integer, got {}", name, nb::repr(value).c_str()));
  }
  int overflow = 0;
  const std::int64_t told = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0)
    raise_python(PyExc_ValueError, fmt::format("{}: {} does not fit 64 bits; expected -2^63 to 2^63 - 1", name,
                                               nb::repr(number).c_str()));
  return told;
}

void bind_pattern(nb::module_& module) {
  nb::class_<IndexedPattern>(module, "Pattern",
                             "A description without loss of a sequence of integers, or of vectors; never changes.")
      .def_prop_ro(
          "count", [](const IndexedPattern& of) { return of.pattern.count(); }, "Of vectors; len() too.")
      .def_prop_ro(
          "columns", [](const IndexedPattern& of) { return of.pattern.columns; }, "Of a vector, 1 to 8.")
      .def_prop_ro(
          "names", [](const IndexedPattern& of) { return column_names(of.pattern); },
          "Of the columns, as detect() was told; [] where it was not.")
      .def_prop_ro(
          "shape", [](const IndexedPattern& of) { return shape_of(of.pattern); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "Of the array that expand() gives.")
      .def_prop_ro(
          "terms", [](const IndexedPattern& of) { return of.pattern.terms.size(); }, "Nests, and blocks of literals.")
      .def_prop_ro(
          "exceptions", [](const IndexedPattern& of) { return of.pattern.exception_positions.size(); },
          "Single vectors that differ from what a nest says.")
      .def_prop_ro(
          "bytes", [](const IndexedPattern& of) { return pattern_bytes(of.pattern).size(); }, "Of the binary form.")
      .def_prop_ro(
          "follows", [](const IndexedPattern& of) { return follows_of(of.pattern); },
          nb::sig("def follows(self) -> list[int | None]"), "For each column the one whose running sum it is, or None.")
      .def("__len__", [](const IndexedPattern& of) { return of.pattern.count(); })
      .def("__getitem__", element_at, "position"_a,
           nb::sig("def __getitem__(self, position: int) -> int | tuple[int, ...]"),
           "The vector at a position; negative ones count from the end.")
      .def("__getitem__", slice_of, "positions"_a, nb::sig("def __getitem__(self, positions: slice) -> numpy.ndarray"))
      .def("__getitem__", vectors_at, "positions"_a.noconvert(),
           nb::sig("def __getitem__(self, positions: numpy.ndarray) -> numpy.ndarray"))
      .def("__getitem__", vectors_by, "positions"_a.none(),
           nb::sig("def __getitem__(self, positions: collections.abc.Sequence[int | bool]) -> numpy.ndarray"),
           "Those at the positions, or where a mask as long as the pattern is true.")
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
      .def(
          "expand", [](const IndexedPattern& of) { return run_of(of, 0, of.pattern.count()); },
          nb::sig("def expand(self) -> numpy.ndarray"),
          "All of it: an array of one dimension where there is one column, else a row for each vector.")
      .def("predict", predicted_by, "count"_a, nb::sig("def predict(self, count: int) -> numpy.ndarray"),
           "Up to `count` vectors that come next if the last nest goes on.")
      .def(
          "text",
          [](const IndexedPattern& of, const nb::object& columns) {
            const auto names = names_in(of.pattern, names_of(columns));
            if (!names) raise_python(PyExc_ValueError, "columns: " + names.error().message);
            return pattern_text(of.pattern, *names);
          },
          "columns"_a.none() = "", nb::sig("def text(self, columns: str | collections.abc.Sequence[str] = '') -> str"),
          "Loops, strides and counts; `columns` are names to show, as of `iosig pattern detect --columns`.")
      .def(
          "to_json", [](const IndexedPattern& of) { return json_text(of.pattern); },
          "As `iosig pattern detect --json` prints it.")
      .def_static(
          "from_json",
          [](const std::string& text, const std::string& source) {
            return made(value_or_raise(pattern_from_json(text, source)));
          },
          "text"_a, "source"_a = "description", "What to_json() gave. source: what messages call the text.")
      .def(
          "to_bytes", [](const IndexedPattern& of) { return binary_of(of.pattern); },
          "The binary form, as `iosig pattern detect --output` writes it.")
      .def_static(
          "from_bytes",
          [](const nb::bytes& bytes, const std::string& source) { return made(read_binary(bytes, source)); }, "data"_a,
          "source"_a = "description", "What to_bytes() gave. source: what messages call the data.")
      .def("__getstate__", [](const IndexedPattern& of) { return binary_of(of.pattern); })
      .def("__setstate__", [](IndexedPattern* at, const nb::bytes& bytes) {
        new (at) IndexedPattern(read_binary(bytes, "pickled pattern"));
      });
  module.def("parse_columns", names_of, "columns"_a.none());
}

}  // namespace iosig::python
