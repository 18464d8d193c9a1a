#include <nanobind/stl/string.h>

#include <cstddef>

#include "indexed_pattern.h"
#include "iosig/analyze/lookup.h"
#include "pattern.h"

using namespace nanobind::literals;

namespace iosig::python {
namespace {

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

void make_lookup(PatternLookup* at, const IndexedPattern& of, const nb::object& columns) {
  const auto names = names_in(of.pattern, names_of(columns));
  if (!names) raise_python(PyExc_ValueError, "columns: " + names.error().message);
  const auto places = lookup_columns(*names, of.pattern.columns);
  if (!places) raise_python(PyExc_ValueError, "columns: " + places.error().message);
  Result<PatternLookup> lookup = [&] {
    const nb::gil_scoped_release others_may_run;
    return PatternLookup::of(of.pattern, *places);
  }();
  new (at) PatternLookup(value_or_raise(std::move(lookup)));
}

nb::object pieces_of(const PatternLookup& lookup, const nb::object& from, const nb::object& bytes_wanted) {
  const std::int64_t offset = integer_of(from, "offset"), length = integer_of(bytes_wanted, "length");
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

}  // namespace

void bind_lookup(nb::module_& module) {
  nb::class_<PatternLookup>(module, "Lookup",
                            "Where the bytes of a logical file were written, by the pattern of its writes.")
      .def("__init__", make_lookup, "pattern"_a, "columns"_a.none() = "", nb::keep_alive<1, 2>(),
           nb::sig("def __init__(self, pattern: Pattern, columns: str | collections.abc.Sequence[str] = '') -> None"),
           "columns: names as of `iosig pattern lookup`; logical,length,physical,id, or the first three, unless given.")
      .def_prop_ro("size", &PatternLookup::size, "The end of the last byte written.")
      .def_prop_ro("memory_bytes", &PatternLookup::memory_bytes, "That the lookup takes beside the pattern.")
      .def("find", pieces_of, "offset"_a.none(), "length"_a.none(),
           nb::sig("def find(self, offset: int, length: int) -> numpy.ndarray"),
           "What `length` bytes from `offset` on are, in order: `logical`, `length`, `id`, `physical`, `is_hole` "
           "each.\n\n"
           "Where `is_hole` nobody wrote: these bytes read as zeros, and `id` and `physical` mean nothing.");
}

}  // namespace iosig::python
