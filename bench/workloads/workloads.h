// The accesses of well-known parallel programs, for benchmarks and repros to link to: docs/references.md#pattern,
// sections 3 to 5 (docs/howto/workloads.md has each workload with its parameters and where they come from).
//
// Everything is a function of the name, the parameters and the seed: the same on every machine and in any order of
// asking, so that one rank's accesses can be had without the others'.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "iosig/base/result.h"
#include "nest.h"

namespace iosig::workloads {

/// A number that a workload can be told, in its own unit.
struct Parameter {
  std::string_view name;
  std::uint64_t value = 0;     ///< unless told
  bool is_size = false;        ///< in bytes, else a count
  std::uint64_t least = 1;     ///< smaller values are refused
  std::string_view meaning{};  ///< with the source of the value
};

struct Parameters {
  std::uint32_t ranks = 16;
  std::uint64_t seed = 1;                                    ///< of zipf and random
  std::map<std::string, std::uint64_t, std::less<>> values;  ///< by Parameter::name; the others keep their own
};

/// One workload, ready to be walked through.
struct Plan {
  std::uint32_t ranks = 1;
  std::uint64_t file_bytes = 0;     ///< where the last access ends; of each file where ranks have their own
  std::uint64_t request_bytes = 0;  ///< > 0: what extents are cut into (Walk)
  bool is_one_file = true;          ///< else one for each rank
  bool is_repeating = false;        ///< a rank may write a byte again; between ranks only shared extents overlap
  std::function<Nests(std::uint32_t rank)> nests{};

  [[nodiscard]] Walk walk(std::uint32_t rank) const { return Walk(nests(rank), request_bytes); }
};

struct Workload {
  std::string_view name;
  std::string_view what;    ///< one line
  std::string_view source;  ///< what it is like, and what says so
  std::vector<Parameter> parameters;
  /// `parameters` has a value for each parameter, none below its least.
  Result<Plan> (*plan)(const Parameters& parameters);
};

/// All of them, in the order of docs/howto/workloads.md.
[[nodiscard]] std::span<const Workload> catalogue();

/// `bad_input` when there is none, with the nearest name.
[[nodiscard]] Result<const Workload*> find_workload(std::string_view name);

inline constexpr std::uint32_t max_ranks = 1u << 20;
inline constexpr std::uint64_t largest_value = 1ULL << 40;  ///< of a parameter

/// `bad_input` when the workload has no such parameter, a value is out of range, the ranks do not suit it, or the file
/// would be larger than max_bytes.
[[nodiscard]] Result<Plan> make_plan(const Workload& workload, Parameters parameters);

/// One access of a rank.
struct Access {
  std::uint32_t rank = 0;
  std::uint64_t logical_bytes = 0;  ///< offset in the file
  std::uint64_t length_bytes = 0;
  std::uint64_t physical_bytes = 0;  ///< offset in the rank's own dropping: the lengths of its earlier accesses
};

/// One rank after the other, or one access of each rank in turn, as a parallel run would.
enum class Order { rank, round };

/// Every access of `plan`, of the ranks from `first` to before `last`, until `take` says false.
void generate(const Plan& plan, Order order, std::uint32_t first, std::uint32_t last,
              const std::function<bool(const Access&)>& take);

/// The same by name and for all ranks.
[[nodiscard]] Result<void> generate(std::string_view name, const Parameters& parameters, Order order,
                                    const std::function<bool(const Access&)>& take);

}  // namespace iosig::workloads
