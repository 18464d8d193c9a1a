// Which calls count in an answer (query.h, Filter).
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "iosig/observe/query.h"
#include "iosig/trace/trace.h"

namespace iosig::observe {

/// Whether accesses satisfy a filter, which must outlive the object.
class Condition {
 public:
  explicit Condition(const Filter& filter);

  /// The process of the access satisfies is_process().
  [[nodiscard]] bool operator()(const trace::Access& access);
  [[nodiscard]] bool is_process(const trace::Process& process) const;
  /// Blocks without one of these calls (bit: number % 64) have none that counts.
  [[nodiscard]] std::uint64_t call_set() const;

 private:
  bool is_file(std::string_view path);

  const Filter& filter_;
  std::vector<bool> calls_;
  std::unordered_map<const char*, bool> files_;  ///< by the address of the path
};

}  // namespace iosig::observe
