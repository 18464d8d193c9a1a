// Patterns for Python, over NumPy arrays: iosig.patterns.
#pragma once

#include <nanobind/nanobind.h>

namespace iosig::python {

void bind_pattern(nanobind::module_& module);    ///< Pattern, parse_columns
void bind_detection(nanobind::module_& module);  ///< detect, Detector, merge
void bind_lookup(nanobind::module_& module);     ///< Lookup

}  // namespace iosig::python
