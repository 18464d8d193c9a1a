#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <mutex>

#include "indexed_pattern.h"
#include "iosig/analyze/access_detector.h"
#include "iosig/analyze/detect_paper.h"
#include "iosig/analyze/merge.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/vectors_text.h"
#include "pattern.h"

using namespace nanobind::literals;

namespace iosig::python {
namespace {

constexpr std::int64_t largest_window = 1024;

std::uint32_t checked_columns(std::uint64_t columns) {
  if (columns < 1 || columns > max_columns)
    raise_python(PyExc_ValueError, fmt::format("columns: expected 1 to {}, got {}", max_columns, columns));
  return static_cast<std::uint32_t>(columns);
}

std::uint32_t checked_window(std::int64_t window) {
  if (window < 1 || window > largest_window)
    raise_python(PyExc_ValueError, fmt::format("window: expected 1 to {}, got {}", largest_window, window));
  return static_cast<std::uint32_t>(window);
}

Made detected(const Vectors& vectors, const nb::object& columns, const std::string& algorithm,
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
  in_batches(vectors.shape(0), [&](std::uint64_t from, std::uint64_t end) {
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
  Pattern pattern = is_paper ? detect_paper({vectors.data(), vectors.size()}, paper)
                             : detector.finish([](const Pattern& found) { return pattern_bytes(found).size(); });
  set_column_names(pattern, names);
  return made(std::move(pattern));
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

// ---- streaming ----------------------------------------------------------------------------------------------------

/// One thread at a time: the GIL is not held while it works.
class SharedDetector {
 public:
  SharedDetector(const DetectOptions& options, std::vector<std::string> names)
      : columns_(options.columns), check_(std::move(names)), detector_(options) {}

  [[nodiscard]] std::uint32_t columns() const { return columns_; }

  void push(const Vectors& vectors) {
    if (vectors.shape(1) != columns_)
      raise_python(PyExc_ValueError, fmt::format("vectors: expected {} columns, got {}", columns_, vectors.shape(1)));
    if (!check_.names().empty()) {
      std::string fault;  // before anything is pushed
      in_batches(vectors.shape(0), [&](std::uint64_t from, std::uint64_t end) {
        for (std::uint64_t n = from; n < end && fault.empty(); ++n)
          if (fault = check_.fault({vectors.data() + n * columns_, columns_}); !fault.empty())
            fault = fmt::format("row {}: {}", n, fault);
      });
      if (!fault.empty()) raise_python(PyExc_ValueError, fault);
    }
    in_batches(vectors.shape(0), [&](std::uint64_t from, std::uint64_t end) {
      const std::scoped_lock alone(mutex_);
      for (std::uint64_t n = from; n < end; ++n) detector_.push({vectors.data() + n * columns_, columns_});
    });
  }

  [[nodiscard]] const std::vector<std::string>& names() const { return check_.names(); }

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
  AccessCheck check_;
  std::mutex mutex_;
  Detector detector_;
};

/// columns: how many, or their names, whose accesses are then checked.
void make_detector(SharedDetector* at, const nb::object& columns_or_names,
                   const std::vector<std::optional<int>>& follows, std::int64_t window, bool allows_exceptions) {
  std::vector<std::string> names;
  std::int64_t columns = 0;
  if (PyIndex_Check(columns_or_names.ptr()) != 0) {
    columns = integer_of(columns_or_names, "columns");
  } else {
    names = names_of(columns_or_names);
    columns = static_cast<std::int64_t>(names.size());
  }
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
  new (at) SharedDetector(options, std::move(names));
}

}  // namespace

void bind_detection(nb::module_& module) {
  nb::class_<SharedDetector>(module, "Detector",
                             "Detection while the vectors come by: push them, ask what comes next, finish.")
      .def("__init__", make_detector, "columns"_a.none() = 1, "follows"_a = nb::make_tuple(),
           "window"_a = DetectOptions{}.window, "allows_exceptions"_a = true,
           nb::sig("def __init__(self, columns: int | str | collections.abc.Sequence[str] = 1, "
                   "follows: collections.abc.Sequence[int | None] = (), window: int = 32, "
                   "allows_exceptions: bool = True) -> None"))
      .def_prop_ro("columns", &SharedDetector::columns, "Of a vector.")
      .def_prop_ro(
          "count", [](SharedDetector& shared) { return shared.ask([](const Detector& d) { return d.count(); }); },
          "Vectors so far.")
      .def_prop_ro(
          "confidence",
          [](SharedDetector& shared) { return shared.ask([](const Detector& d) { return d.confidence(); }); },
          "0 to 1 that the next vector is as predict() says; 0 where no nest runs.")
      .def("push", &SharedDetector::push, "vectors"_a, "One vector, or a row for each of many; all of them or none.")
      .def("predict", &SharedDetector::predict, "count"_a = 1,
           nb::sig("def predict(self, count: int = 1) -> numpy.ndarray"),
           "Up to `count` vectors that come next, as far as that can be said.")
      .def(
          "finish",
          [](SharedDetector& shared) {
            Pattern pattern = shared.ask([](Detector& d) { return d.finish(); });
            set_column_names(pattern, shared.names());
            return made(std::move(pattern));
          },
          nb::sig("def finish(self) -> Pattern"), "The pattern of what was pushed; the detector is as new.");
  module.def("detect", detected, "vectors"_a, "columns"_a.none() = "", "algorithm"_a = "nest", "window"_a = nb::none());
  module.def("merge", merged, "patterns"_a, "ids"_a);
}

}  // namespace iosig::python
