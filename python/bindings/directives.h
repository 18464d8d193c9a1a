// The directives of a template for Python: iosig.generate.
#pragma once

#include <nanobind/nanobind.h>

namespace iosig::python {

void bind_directives(nanobind::module_& module);  ///< read_template

}  // namespace iosig::python
