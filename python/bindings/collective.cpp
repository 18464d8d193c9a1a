#include "collective.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "iosig/cost/collective.h"
#include "raise.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace iosig::python {
namespace {

/// As SharedTransfer and TransferTerms have them.
using TransferTuple = std::tuple<double, double, double, double, double>;
using TermsTuple = std::tuple<double, double, double, double, double, double>;

TermsTuple tuple_of(const TransferTerms& terms) {
  return {terms.outputs, terms.calls, terms.memory_pieces, terms.file_pieces, terms.interleaved_bytes, terms.bytes};
}

TransferTerms terms_of(const TermsTuple& told) {
  const auto [outputs, calls, memory_pieces, file_pieces, interleaved_bytes, bytes] = told;
  return {outputs, calls, memory_pieces, file_pieces, interleaved_bytes, bytes};
}

TermsTuple transfer_work(const std::string& method, const std::vector<TransferTuple>& data_sets) {
  static const std::map<std::string, TransferMethod> methods{{"two-phase", TransferMethod::two_phase},
                                                             {"nonblocking", TransferMethod::nonblocking},
                                                             {"sieving", TransferMethod::sieving},
                                                             {"requests", TransferMethod::requests}};
  const auto found = methods.find(method);
  if (found == methods.end())
    raise_python(PyExc_ValueError,
                 "method: expected two-phase, nonblocking, sieving or requests, got '" + method + "'");
  std::vector<SharedTransfer> transfers;
  for (const auto& [ranks, memory_pieces, file_pieces, bytes, spanned_bytes] : data_sets)
    transfers.push_back({ranks, memory_pieces, file_pieces, bytes, spanned_bytes});
  return tuple_of(work_of(found->second, transfers));
}

double transfer_seconds(const TermsTuple& work, const TermsTuple& costs) {
  return predicted_seconds(terms_of(work), terms_of(costs));
}

TermsTuple fitted_transfer_costs(const std::vector<std::tuple<TermsTuple, double>>& measured) {
  std::vector<MeasuredTransfer> transfers;
  for (const auto& [work, seconds] : measured) transfers.push_back({terms_of(work), seconds});
  return tuple_of(value_or_raise(fitted_costs(transfers)));
}

}  // namespace

void bind_collective(nb::module_& module) {
  module.def("transfer_work", transfer_work, "method"_a, "data_sets"_a);
  module.def("transfer_seconds", transfer_seconds, "work"_a, "costs"_a);
  module.def("fitted_transfer_costs", fitted_transfer_costs, "measured"_a);
}

}  // namespace iosig::python
