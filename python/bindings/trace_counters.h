// Counters of files whose single calls a trace does not have, for Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <string>

#include "iosig/base/text.h"
#include "iosig/trace/counters.h"

namespace iosig::python {

inline void add_counters(const trace::FileCounters& of, nanobind::dict& row) {
  row["path"] = nanobind::str(printable(of.path).c_str());
  row["layer"] = std::string(trace::layer_names[static_cast<std::size_t>(of.layer)]);
  row["rank"] = of.rank;
  row["processes"] = of.processes;
  row["reads"] = of.reads.calls;
  row["read_bytes"] = of.reads.bytes;
  row["writes"] = of.writes.calls;
  row["written_bytes"] = of.writes.bytes;
  row["syncs"] = of.syncs;
  row["end"] = of.end;
}

}  // namespace iosig::python
