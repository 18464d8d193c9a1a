// Finds loop nests in a stream of vectors, online and without loss.
//
// A nest runs once it has completed three turns: the detector compares each vector with the one that the nest predicts,
// at any depth. The first mismatch ends the nest unless it is an exception, which it is if the following vectors fit
// again. Source: docs/references.md#nested-loops; the window is analyze/term_stack. Ours: the odometer over the whole
// nest, affine trip counts, exceptions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "iosig/analyze/term_stack.h"
#include "iosig/model/nest.h"
#include "iosig/model/pattern.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {

struct DetectOptions {
  std::uint32_t columns = 1;  ///< 1 to max_columns
  /// As Pattern::follows: the columns to describe as running sums of others.
  std::array<std::int8_t, max_columns> follows = {-1, -1, -1, -1, -1, -1, -1, -1};
  std::uint32_t window = 32;      ///< the longest body of a loop, in terms (vectors, or nests within it)
  bool allows_exceptions = true;  ///< at most one vector in eight of a nest
  /// How many of the first columns, which follow no others, have no negative numbers. Then no element of a nest has
  /// one there, not even where an exception replaces it: lookups can use the nest.
  std::uint32_t unsigned_columns = 0;
};

/// Detects one stream. Memory: a few thousand terms plus the description. push() allocates nothing while a nest runs;
/// vectors without structure grow the description by one block at a time.
class Detector {
 public:
  explicit Detector(const DetectOptions& options);
  // Not copyable: the odometer refers to the window.
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  /// Adds the next vector: `columns` numbers of any value.
  void push(std::span<const std::int64_t> vector) {
    if (rest_ > 0 && !is_waiting_ && fits(vector.data())) {
      std::uint64_t* const expected = expected_;
      const std::uint64_t* const steps = expected + steps_;
      for (std::uint32_t column = 0; column < columns_; ++column) expected[column] += steps[column];
      follow(vector.data());
      expected_ += columns_;
      if (expected_ == round_end_) expected_ = round_.data();
      --rest_;
      ++position_;
      return;
    }
    push_slowly(vector.data());
  }
  [[nodiscard]] std::uint64_t count() const { return position_; }

  /// Predicts the next vectors from the running nest, as many as fit into `out`. Returns their number; 0 if no nest
  /// runs.
  [[nodiscard]] std::size_t predict(std::span<std::int64_t> out) const;
  /// Returns the confidence in [0, 1]: (n + 1) / (n + 2 + 8 e) after n vectors that the running nest predicted and e
  /// exceptions to it (Laplace's rule of succession, with exceptions weighted 8-fold); half of that while a mismatch is
  /// undecided; 0 if no nest runs.
  [[nodiscard]] double confidence() const;

  /// Returns the size of the running nest in memory; 0 if none runs.
  [[nodiscard]] std::size_t running_bytes() const;

  /// Returns the description of all vectors pushed and resets the detector.
  [[nodiscard]] Pattern finish();

 private:
  /// Returns whether a vector, as pushed, is the expected one.
  [[nodiscard]] bool fits(const std::int64_t* vector) const {
    for (std::uint32_t column = 0; column < columns_; ++column)
      if (expected_[column] + sums_[column] != static_cast<std::uint64_t>(vector[column])) return false;
    return true;
  }
  /// Adds a vector to the running sums.
  void follow(const std::int64_t* vector) {
    for (std::uint32_t n = 0; n < followers_; ++n)
      sums_[follower_[n].column] = static_cast<std::uint64_t>(vector[follower_[n].column]) +
                                   static_cast<std::uint64_t>(vector[follower_[n].source]);
  }
  /// As fits(), for a vector as stored.
  [[nodiscard]] bool is_expected(const std::int64_t* stored) const {
    for (std::uint32_t column = 0; column < columns_; ++column)
      if (static_cast<std::int64_t>(expected_[column]) != stored[column]) return false;
    return true;
  }
  void store(const std::int64_t* vector, std::int64_t* stored);
  void push_slowly(const std::int64_t* stored);
  void replay();
  void feed(const std::int64_t* stored);
  void await(const std::int64_t* stored, bool fits);
  void accept();
  void reject();
  void run_top();
  void stop_and_reduce();
  void expect();
  void advance();
  void catch_up(NestWalk& walk) const;
  void look_further(NestWalk& walk, std::int64_t& limit) const;
  [[nodiscard]] bool may_be_exception() const;
  [[nodiscard]] bool foretells_possible() const;
  [[nodiscard]] bool is_periodic(std::uint64_t position, const std::int64_t* vector) const;

  std::uint32_t columns_;
  bool allows_exceptions_;
  std::uint32_t unsigned_columns_;
  struct Follower {
    std::uint8_t column = 0, source = 0;
  };
  std::array<Follower, max_columns> follower_{};
  std::uint32_t followers_ = 0;
  std::array<std::uint64_t, max_columns>
      sums_{};  ///< difference between the next vector and its stored form; 0 except in followers

  // The odometer. walk_ is at the leaf that the running nest (the top of the window) expected when it last moved. If
  // that leaf began a round of the innermost loop, and its body consists of leaves only, round_ holds the next vectors
  // of the round and, steps_ numbers further on, their change from turn to turn. Otherwise round_ holds only the one
  // vector. expected_ points to the next vector; rest_ more vectors follow it before walk_ must move.
  bool is_running_ = false, is_at_end_ = false, is_waiting_ = false;
  NestWalk walk_;
  std::vector<std::uint64_t> round_;  ///< modulo 2^64, for sums that are never used
  std::uint64_t* expected_ = nullptr;
  std::uint64_t* round_end_ = nullptr;
  std::size_t steps_ = 0;
  std::uint64_t rest_ = 0, moved_ = 0;  ///< moved_: position when walk_ last moved
  std::uint32_t round_size_ = 0;        ///< leaves; 0: no round
  std::int64_t limit_ = 0;
  std::uint64_t iteration_ = 0;  ///< position at which the outermost loop's current turn began
  std::uint64_t began_ = 0;      ///< position at which the nest began to run

  // waiting_: the vectors since a mismatch, until it is known whether that was an exception. replayed_: vectors to push
  // again, the next one last.
  std::vector<std::int64_t> waiting_, replayed_;
  std::uint32_t misfits_ = 0, fits_ = 0;  ///< bit set of the mismatches in waiting_; matches since the last one
  struct {
    NestWalk walk;
    std::int64_t limit = 0;
    std::uint64_t iteration = 0, position = 0;
  } saved_;
  std::uint64_t nest_exceptions_ = 0;       ///< of the running nest
  std::uint64_t no_exceptions_before_ = 0;  ///< position

  std::uint64_t position_ = 0;  ///< number of vectors described, in the window or waiting
  TermStack stack_;
  Exceptions exceptions_;
  PatternBuilder builder_;
};

/// Detects the pattern of all `vectors`, `options.columns` numbers each.
[[nodiscard]] Pattern detect(std::span<const std::int64_t> vectors, const DetectOptions& options);

}  // namespace iosig
