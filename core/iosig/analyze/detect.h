// Finds the loop nests in a stream of vectors while it passes by: what comes in is described without loss.
//
// A nest that has turned three times runs from then on: each vector is compared with the one the nest says, whatever
// the depth. The first that differs ends the nest, unless it turns out to be an exception: the following ones fit
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
  /// As Pattern::follows: which columns to describe as running sums of others.
  std::array<std::int8_t, max_columns> follows = {-1, -1, -1, -1, -1, -1, -1, -1};
  std::uint32_t window = 32;      ///< the longest body of a loop, in terms (vectors, or nests within it)
  bool allows_exceptions = true;  ///< at most an eighth of a nest
};

/// Memory: a few thousand terms, besides what has been described. push() allocates nothing while a nest runs; what has
/// no structure grows the description by a block at a time.
class Detector {
 public:
  explicit Detector(const DetectOptions& options);
  // The odometer refers to the window.
  Detector(const Detector&) = delete;
  Detector& operator=(const Detector&) = delete;

  /// The next vector, `columns` numbers, any values.
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

  /// The vectors that come next, as far as a running nest says and `out` has room: how many. 0 where none runs.
  [[nodiscard]] std::size_t predict(std::span<std::int64_t> out) const;
  /// In [0, 1]: (n + 1) / (n + 2 + 8 e) after n vectors that the running nest foretold and e exceptions to it
  /// (Laplace's rule of succession, exceptions taken hard); half of that while a vector that did not fit awaits the
  /// next ones; 0 where none runs.
  [[nodiscard]] double confidence() const;

  /// What was pushed. The detector is as new afterwards.
  [[nodiscard]] Pattern finish();

 private:
  /// Whether a vector as it was pushed is the expected one.
  [[nodiscard]] bool fits(const std::int64_t* vector) const {
    for (std::uint32_t column = 0; column < columns_; ++column)
      if (expected_[column] + sums_[column] != static_cast<std::uint64_t>(vector[column])) return false;
    return true;
  }
  /// Takes a vector into the running sums.
  void follow(const std::int64_t* vector) {
    for (std::uint32_t n = 0; n < followers_; ++n)
      sums_[follower_[n].column] = static_cast<std::uint64_t>(vector[follower_[n].column]) +
                                   static_cast<std::uint64_t>(vector[follower_[n].source]);
  }
  /// The same of a vector as it is stored.
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
  [[nodiscard]] bool is_periodic(std::uint64_t position, const std::int64_t* vector) const;

  std::uint32_t columns_;
  bool allows_exceptions_;
  struct Follower {
    std::uint8_t column = 0, source = 0;
  };
  std::array<Follower, max_columns> follower_{};
  std::uint32_t followers_ = 0;
  std::array<std::uint64_t, max_columns>
      sums_{};  ///< what the next vector is above as it is stored; 0 but of followers

  // The odometer. walk_ is at the leaf that the running nest, the top of the window, expected when it last moved. If
  // that began a round, the innermost loop's body of leaves alone, then round_ has their next vectors and, steps_
  // behind, how these change from turn to turn; else just the one. expected_ comes next; rest_ follow it in these
  // rounds.
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

  // Vectors since one that did not fit, until it is known whether that was an exception; then those to push again, the
  // next one last.
  std::vector<std::int64_t> waiting_, replayed_;
  std::uint32_t misfits_ = 0, fits_ = 0;  ///< bits of those that did not fit; how many fitted since
  struct {
    NestWalk walk;
    std::int64_t limit = 0;
    std::uint64_t iteration = 0, position = 0;
  } saved_;
  std::uint64_t nest_exceptions_ = 0;       ///< of the running nest
  std::uint64_t no_exceptions_before_ = 0;  ///< position

  std::uint64_t position_ = 0;  ///< vectors that are described, in the window, or wait
  TermStack stack_;
  Exceptions exceptions_;
  PatternBuilder builder_;
};

/// All of `vectors`, `options.columns` numbers each.
[[nodiscard]] Pattern detect(std::span<const std::int64_t> vectors, const DetectOptions& options);

}  // namespace iosig
