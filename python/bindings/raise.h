// How the core's failures reach Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "iosig/base/result.h"

namespace iosig::python {

/// `message` may quote half a character of the input: what is no UTF-8 is shown as such instead of failing itself.
[[noreturn]] inline void raise_python(PyObject* type, const std::string& message) {
  const auto text = nanobind::steal(
      PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
  PyErr_SetObject(type, text.ptr());
  throw nanobind::python_error();
}

/// A failure becomes a ValueError (bad text, bad file) or an OSError (the system refused) with its message.
template <class T>
T value_or_raise(Result<T> result) {
  if (result) return *std::move(result);
  const Error& error = result.error();
  raise_python(error.kind == ErrorKind::system ? PyExc_OSError : PyExc_ValueError, error.message);
}

}  // namespace iosig::python
