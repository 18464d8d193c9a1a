// Patterns for Python, over NumPy arrays: iosig.patterns.
#pragma once

#include <nanobind/nanobind.h>

namespace iosig::python {

void bind_patterns(nanobind::module_& module);

}  // namespace iosig::python
