#include "pattern.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <memory>
#include <mutex>

#include "iosig/analyze/access_detector.h"
#include "iosig/analyze/detect_paper.h"
#include "iosig/analyze/lookup.h"
#include "iosig/analyze/merge.h"
#include "iosig/base/text.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/pattern_text.h"
#include "iosig/format/vectors_text.h"
#include "iosig/model/pattern_cursor.h"
#include "raise.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace iosig::python {
namespace {

/// A vector for each row. iosig.patterns makes such arrays of what it is given.
using Vectors = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Positions = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

constexpr std::int64_t largest_window = 1024;

/// A pattern and what its elements are found by.
struct IndexedPattern {
  explicit IndexedPattern(Pattern described) : pattern(std::move(described)), index(pattern) {}
  IndexedPattern(const IndexedPattern&) = delete;
  IndexedPattern& operator=(const IndexedPattern&) = delete;

  const Pattern pattern;
  const PatternIndex index;
};
using Made = std::unique_ptr<IndexedPattern>;

Made made(Pattern pattern) { return std::make_unique<IndexedPattern>(std::move(pattern)); }

/// Calls work(first, end) for stretches of 0 .. count without the GIL; ^C between two of them raises.
template <class Work>
void in_stretches(std::uint64_t count, Work work) {
  constexpr std::uint64_t stretch = 1 << 20;
  for (std::uint64_t first = 0; first < count; first += stretch) {
    {
      const nb::gil_scoped_release others_may_run;
      work(first, std::min(count, first + stretch));
    }
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

// ---- arrays -------------------------------------------------------------------------------------------------------

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

// ---- what is asked for --------------------------------------------------------------------------------------------

std::uint32_t checked_columns(std::uint64_t columns) {
  if (columns < 1 || columns > most_columns)
    raise_python(PyExc_ValueError, fmt::format("columns: expected 1 to {}, got {}", most_columns, columns));
  return static_cast<std::uint32_t>(columns);
}

std::uint32_t checked_window(std::int64_t window) {
  if (window < 1 || window > largest_window)
    raise_python(PyExc_ValueError, fmt::format("window: expected 1 to {}, got {}", largest_window, window));
  return static_cast<std::uint32_t>(window);
}

/// "" is none.
std::vector<std::string> names_of(const std::string& columns) {
  if (columns.empty()) return {};
  auto names = parse_columns(columns);
  if (!names) raise_python(PyExc_ValueError, "columns: " + names.error().message);
  return *std::move(names);
}

Made detected(const Vectors& vectors, const std::string& columns, const std::string& algorithm,
              std::optional<std::int64_t> window) {
  const std::uint32_t width = checked_columns(vectors.shape(1));
  const std::vector<std::string> names = names_of(columns);
  if (!names.empty() && names.size() != width)
    raise_python(PyExc_ValueError, fmt::format("columns: {} names for {} columns", names.size(), width));
  if (algorithm != "nest" && algorithm != "paper")
    raise_python(PyExc_ValueError, fmt::format("algorithm must be 'nest' or 'paper', got '{}'", algorithm));
  DetectOptions nest{.columns = width};
  PaperOptions paper{.columns = width};
  if (window) nest.window = paper.window = checked_window(*window);
  const bool is_paper = algorithm == "paper";
  const AccessCheck check(names);
  AccessDetector detector(nest, access_columns(names));
  std::string fault;
  in_stretches(vectors.shape(0), [&](std::uint64_t from, std::uint64_t end) {
    for (std::uint64_t n = from; n < end && fault.empty(); ++n) {
      const std::span<const std::int64_t> vector(vectors.data() + n * width, width);
      if (fault = check.fault(vector); !fault.empty())
        fault = fmt::format("row {}: {}", n, fault);
      else if (!is_paper)
        detector.push(vector);
    }
  });
  if (!fault.empty()) raise_python(PyExc_ValueError, fault);
  const nb::gil_scoped_release others_may_run;
  if (is_paper) return made(detect_paper({vectors.data(), vectors.size()}, paper));
  return made(detector.finish([](const Pattern& pattern) { return pattern_bytes(pattern).size(); }));
}

/// The merged pattern, and how many accesses had to be put in order one by one.
nb::tuple merged(const std::vector<const IndexedPattern*>& locals, const std::vector<std::int64_t>& ids) {
  if (!ids.empty() && ids.size() != locals.size())
    raise_python(PyExc_ValueError, fmt::format("ids: {} ids for {} patterns", ids.size(), locals.size()));
  if (std::ranges::find(locals, nullptr) != locals.end())
    raise_python(PyExc_TypeError, "patterns: got None among them");
  std::vector<LocalPattern> parts;
  for (std::size_t n = 0; n < locals.size(); ++n)
    parts.push_back({.pattern = &locals[n]->pattern, .id = ids.empty() ? static_cast<std::int64_t>(n) : ids[n]});
  Result<MergedPattern> whole = [&] {
    const nb::gil_scoped_release others_may_run;
    return merge_patterns(parts);
  }();
  MergedPattern told = value_or_raise(std::move(whole));
  return nb::make_tuple(made(std::move(told.pattern)), told.interleaved);
}

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

Pattern read_binary(const nb::bytes& bytes) {
  return value_or_raise(
      pattern_from_bytes({static_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, "description"));
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

// ---- streaming ----------------------------------------------------------------------------------------------------

/// One thread at a time: the GIL is not held while it works.
class SharedDetector {
 public:
  explicit SharedDetector(const DetectOptions& options) : columns_(options.columns), detector_(options) {}

  [[nodiscard]] std::uint32_t columns() const { return columns_; }

  void push(const Vectors& vectors) {
    if (vectors.shape(1) != columns_)
      raise_python(PyExc_ValueError, fmt::format("vectors: expected {} columns, got {}", columns_, vectors.shape(1)));
    in_stretches(vectors.shape(0), [&](std::uint64_t from, std::uint64_t end) {
      const std::scoped_lock alone(mutex_);
      for (std::uint64_t n = from; n < end; ++n) detector_.push({vectors.data() + n * columns_, columns_});
    });
  }

  /// `ask` of the detector.
  template <class Ask>
  auto ask(Ask ask) {
    const nb::gil_scoped_release others_may_run;
    const std::scoped_lock alone(mutex_);
    return ask(detector_);
  }

  nb::object predict(std::int64_t count) {
    return predictions(count, columns_, [&](std::span<std::int64_t> out) {
      const std::scoped_lock alone(mutex_);
      return detector_.predict(out);
    });
  }

 private:
  std::uint32_t columns_;
  std::mutex mutex_;
  Detector detector_;
};

void make_detector(SharedDetector* at, std::int64_t columns, const std::vector<std::optional<int>>& follows,
                   std::int64_t window, bool allows_exceptions) {
  DetectOptions options{.columns = checked_columns(columns < 0 ? 0 : static_cast<std::uint64_t>(columns)),
                        .window = checked_window(window),
                        .allows_exceptions = allows_exceptions};
  if (!follows.empty() && follows.size() != options.columns)
    raise_python(PyExc_ValueError,
                 fmt::format("follows: expected an entry for each of {} columns, got {}", columns, follows.size()));
  for (std::size_t column = 0; column < follows.size(); ++column) {
    if (!follows[column]) continue;
    const int source = *follows[column];
    if (source < 0 || source >= columns || follows[static_cast<std::size_t>(source)])
      raise_python(
          PyExc_ValueError,
          fmt::format("follows: column {} cannot follow {}; expected a column that follows none", column, source));
    options.follows[column] = static_cast<std::int8_t>(source);
  }
  new (at) SharedDetector(options);
}

// ---- lookup -------------------------------------------------------------------------------------------------------

/// A Piece as NumPy sees it.
nb::object piece_type() {
  nb::dict fields;
  const auto names = nb::make_tuple("logical", "length", "id", "physical", "is_hole");
  const auto offsets = nb::make_tuple(offsetof(Piece, logical), offsetof(Piece, length), offsetof(Piece, id),
                                      offsetof(Piece, physical), offsetof(Piece, is_hole));
  fields["names"] = names;
  fields["formats"] = nb::make_tuple("i8", "i8", "i8", "i8", "?");
  fields["offsets"] = offsets;
  fields["itemsize"] = sizeof(Piece);
  return nb::module_::import_("numpy").attr("dtype")(fields);
}

void make_lookup(PatternLookup* at, const IndexedPattern& of, const std::string& columns) {
  const std::vector<std::string> names = names_of(columns);
  const auto places = lookup_columns(names, of.pattern.columns);
  if (!places) raise_python(PyExc_ValueError, "columns: " + places.error().message);
  Result<PatternLookup> lookup = [&] {
    const nb::gil_scoped_release others_may_run;
    return PatternLookup::of(of.pattern, *places);
  }();
  new (at) PatternLookup(value_or_raise(std::move(lookup)));
}

nb::object pieces_of(const PatternLookup& lookup, std::int64_t offset, std::int64_t length) {
  if (offset < 0 || length < 0)
    raise_python(PyExc_ValueError, fmt::format("offset and length: expected 0 or more, got {} and {}", offset, length));
  auto pieces = std::make_unique<std::vector<Piece>>();
  {
    const nb::gil_scoped_release others_may_run;
    lookup.find(offset, length, [&](const Piece& piece) { pieces->push_back(piece); });
  }
  auto* bytes = reinterpret_cast<std::uint8_t*>(pieces->data());
  const std::size_t size = pieces->size() * sizeof(Piece);
  const nb::capsule owner(pieces.release(),
                          [](void* owned) noexcept { delete static_cast<std::vector<Piece>*>(owned); });
  return nb::ndarray<nb::numpy, std::uint8_t>(bytes, {size}, owner).cast().attr("view")(piece_type());
}

void bind_pattern(nb::module_& module) {
  nb::class_<IndexedPattern>(module, "Pattern")
      .def_prop_ro("count", [](const IndexedPattern& of) { return of.pattern.count(); })
      .def_prop_ro("columns", [](const IndexedPattern& of) { return of.pattern.columns; })
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
      .def("__str__", [](const IndexedPattern& of) { return pattern_text(of.pattern); })
      .def("expand", [](const IndexedPattern& of) { return run_of(of, 0, of.pattern.count()); })
      .def("predict", predicted_by, "count"_a)
      .def(
          "text",
          [](const IndexedPattern& of, const std::string& columns) {
            const std::vector<std::string> names = names_of(columns);
            return pattern_text(of.pattern, names);
          },
          "columns"_a = "")
      .def("to_json", [](const IndexedPattern& of) { return json_text(of.pattern); })
      .def_static(
          "from_json",
          [](const std::string& text) { return made(value_or_raise(pattern_from_json(text, "description"))); },
          "text"_a)
      .def("to_bytes", [](const IndexedPattern& of) { return binary_of(of.pattern); })
      .def_static(
          "from_bytes", [](const nb::bytes& bytes) { return made(read_binary(bytes)); }, "data"_a)
      .def("__getstate__", [](const IndexedPattern& of) { return binary_of(of.pattern); })
      .def("__setstate__",
           [](IndexedPattern* at, const nb::bytes& bytes) { new (at) IndexedPattern(read_binary(bytes)); });
}

}  // namespace

void bind_patterns(nb::module_& module) {
  bind_pattern(module);
  nb::class_<SharedDetector>(module, "Detector")
      .def("__init__", make_detector, "columns"_a = 1, "follows"_a = nb::make_tuple(),
           "window"_a = DetectOptions{}.window, "allows_exceptions"_a = true)
      .def_prop_ro("columns", &SharedDetector::columns)
      .def_prop_ro("count",
                   [](SharedDetector& shared) { return shared.ask([](const Detector& d) { return d.count(); }); })
      .def_prop_ro("confidence",
                   [](SharedDetector& shared) { return shared.ask([](const Detector& d) { return d.confidence(); }); })
      .def("push", &SharedDetector::push, "vectors"_a)
      .def("predict", &SharedDetector::predict, "count"_a = 1)
      .def("finish", [](SharedDetector& shared) { return shared.ask([](Detector& d) { return made(d.finish()); }); });
  nb::class_<PatternLookup>(module, "Lookup")
      .def("__init__", make_lookup, "pattern"_a, "columns"_a = "", nb::keep_alive<1, 2>())
      .def_prop_ro("size", &PatternLookup::size)
      .def_prop_ro("memory_bytes", &PatternLookup::memory_bytes)
      .def("find", pieces_of, "offset"_a, "length"_a);
  module.def("merge", merged, "patterns"_a, "ids"_a);
  module.def("detect", detected, "vectors"_a, "columns"_a = "", "algorithm"_a = "nest", "window"_a = nb::none());
}

}  // namespace iosig::python
