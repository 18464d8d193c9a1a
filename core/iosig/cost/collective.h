// Predicts how long the ranks of a program take to move data sets between their memory and a file that they share, by
// each way through MPI-IO.
//
// Ours. A transfer is a number of calls, of pieces and of bytes; what each costs is measured for every I/O library
// (`iosig generate --measure`), since libraries differ more in these than in what they do. Pure.
#pragma once

#include <span>
#include <vector>

#include "iosig/base/result.h"

namespace iosig {

/// two_phase: a collective call for each data set; ranks exchange elements, and some write large pieces.
/// nonblocking: one collective call for all data sets.
/// sieving: each rank for itself; a piece of the file is read with the gaps between the elements, and written back.
/// requests: each rank for itself; each piece of the file is a request.
enum class TransferMethod { two_phase, nonblocking, sieving, requests };

/// One data set, all ranks together. Numbers are real, because blocks of unknown size are assumed.
struct SharedTransfer {
  double ranks = 1;          ///< >= 1
  double memory_pieces = 0;  ///< contiguous pieces of memory, >= ranks
  double file_pieces = 0;    ///< contiguous pieces of the file, each of one rank, >= ranks
  double bytes = 0;          ///< of the elements in the file
  double spanned_bytes = 0;  ///< from a rank's first element in the file to its last one, added up; >= bytes

  bool operator==(const SharedTransfer&) const = default;
};

/// The terms of the model: how many of each a method needs, or how many seconds one of each takes.
struct TransferTerms {
  double outputs = 0;  ///< opening and closing the file
  double calls = 0;    ///< of ranks: a collective call of four ranks counts four times
  double memory_pieces = 0, file_pieces = 0;
  double interleaved_bytes = 0;  ///< those of data sets of which ranks have several pieces
  double bytes = 0;

  bool operator==(const TransferTerms&) const = default;
};

/// Returns how much of each an output or input of `data_sets` is. Sieving moves the spanned bytes twice where a rank
/// has several pieces of the file, and the bytes once where it has one.
[[nodiscard]] TransferTerms work_of(TransferMethod method, std::span<const SharedTransfer> data_sets);

/// The time of `work` if one of each takes `costs` seconds.
[[nodiscard]] double predicted_seconds(const TransferTerms& work, const TransferTerms& costs);

/// A measured output or input.
struct MeasuredTransfer {
  TransferTerms work;
  double seconds = 0;  ///< > 0
};

/// Returns the costs, none of them negative, under which the predicted times have the least squared relative errors. A
/// term that no measurement has costs 0. Fails with `bad_input` if there is no measurement, or one without time.
[[nodiscard]] Result<TransferTerms> fitted_costs(std::span<const MeasuredTransfer> measured);

}  // namespace iosig
