// The Arrow C data interface: columns for another library of the same process, without a copy and without linking
// Arrow. The structures are those of https://arrow.apache.org/docs/format/CDataInterface.html and
// CStreamInterface.html.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

extern "C" {
struct ArrowSchema {
  const char* format;  ///< the type, e.g. "l": 64-bit integers
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);  ///< null: released
  void* private_data;
};

struct ArrowArray {
  std::int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);  ///< null: released; of a stream's array: the stream has ended
  void* private_data;
};

struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace iosig::python {

/// What an array consists of, for fill_array().
struct ArrayParts {
  std::int64_t length = 0, nulls = 0;
  std::shared_ptr<const void> data;    ///< owns the buffers
  std::vector<const void*> buffers;    ///< the validity bits (null: all are valid) first
  std::vector<ArrowArray> children;    ///< become the array's own
  std::vector<ArrowArray> dictionary;  ///< one or none
};

/// Makes `array` of its parts; its release callback frees them.
void fill_array(ArrowArray& array, ArrayParts parts);

struct SchemaParts {
  std::string format, name;
  std::string metadata;  ///< encoded as the interface says; empty: none
  bool is_nullable = false;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema> dictionary;  ///< one or none
};

/// Makes `schema` of its parts; its release callback frees them.
void fill_schema(ArrowSchema& schema, SchemaParts parts);

/// Encodes pairs of a key and a value for SchemaParts::metadata.
[[nodiscard]] std::string arrow_metadata(const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace iosig::python
