// The fields of accesses as Arrow columns: filled batch by batch, then handed over.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arrow.h"
#include "iosig/trace/trace.h"

namespace iosig::python {

struct Entry {
  trace::Access access;
  std::string_view trace;  ///< its name; stays at this address
};

/// A field of the entries of a batch.
class Column {
 public:
  virtual ~Column() = default;
  virtual void append(std::span<const Entry> entries) = 0;
  /// Returns the values that were appended since the last call.
  [[nodiscard]] virtual ArrowArray take() = 0;
  [[nodiscard]] virtual ArrowSchema schema() const = 0;
};

/// The fields of the trace format in its order, then `trace`.
[[nodiscard]] const std::vector<std::string>& column_names();

/// Returns the column of that name; null: there is none.
[[nodiscard]] std::unique_ptr<Column> make_column(std::string_view name);

}  // namespace iosig::python
