#include "iosig/analyze/detect.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace iosig {
namespace {

constexpr std::uint32_t max_waiting = 8;    ///< vectors until an exception must be decided
constexpr std::uint32_t fits_needed = 3;    ///< consecutive matches that confirm an exception
constexpr std::uint32_t max_misfits = 2;    ///< in waiting_
constexpr std::uint64_t per_exception = 8;  ///< vectors of a nest per exception

std::uint64_t wrapped(std::int64_t value) { return static_cast<std::uint64_t>(value); }

}  // namespace

Detector::Detector(const DetectOptions& options)
    : columns_(std::clamp(options.columns, 1u, max_columns)),
      allows_exceptions_(options.allows_exceptions),
      unsigned_columns_(std::min(options.unsigned_columns, columns_)),
      stack_(columns_, options.window),
      builder_(columns_, options.follows) {
  for (std::uint32_t column = 0; column < columns_; ++column)
    if (options.follows[column] >= 0)
      follower_[followers_++] = {static_cast<std::uint8_t>(column), static_cast<std::uint8_t>(options.follows[column])};
  waiting_.reserve(std::size_t{max_waiting} * columns_);
  replayed_.reserve(std::size_t{2} * max_waiting * columns_);
}

void Detector::store(const std::int64_t* vector, std::int64_t* stored) {
  for (std::uint32_t column = 0; column < columns_; ++column)
    stored[column] = static_cast<std::int64_t>(wrapped(vector[column]) - sums_[column]);
  follow(vector);
}

void Detector::push_slowly(const std::int64_t* vector) {
  std::array<std::int64_t, max_columns> stored;
  store(vector, stored.data());
  feed(stored.data());
  replay();
}

void Detector::replay() {
  while (!replayed_.empty()) {
    std::array<std::int64_t, max_columns> vector{};
    std::copy_n(replayed_.end() - columns_, columns_, vector.begin());
    replayed_.resize(replayed_.size() - columns_);
    feed(vector.data());
  }
}

void Detector::feed(const std::int64_t* stored) {
  while (is_running_) {
    const bool fits = !is_at_end_ && is_expected(stored);
    if (is_waiting_) return await(stored, fits);
    if (fits) return advance();
    if (may_be_exception()) return await(stored, false);
    stop_and_reduce();
  }
  stack_.push_leaf(stored, position_);
  ++position_;
  if (stack_.reduce() && stack_.top_is_nest()) run_top();
  if (!is_running_ && stack_.is_full()) stack_.emit(builder_, exceptions_, false);
}

// ---- the odometer -------------------------------------------------------------------------------------------------

/// Lets the nest on top run from its end on.
void Detector::run_top() {
  const NestView nest = stack_.view(stack_.top());
  limit_ = nest.numbers[0];
  is_running_ = true;
  iteration_ = began_ = position_;
  nest_exceptions_ = 0;
  walk_.start(nest, 0, limit_, limit_);
  expect();
}

/// Extends a walk that is at its end: doubles the trip count if that is valid, else adds one turn if that is valid.
void Detector::look_further(NestWalk& walk, std::int64_t& limit) const {
  const NestView nest = stack_.view(stack_.top());
  if (limit < INT64_MAX / 2 && fault_of(nest, 0, 2 * limit).empty())
    limit *= 2;
  else if (limit < INT64_MAX && fault_of(nest, 0, limit + 1).empty())
    ++limit;
  walk.go_on(limit);
}

/// Loads the vectors that walk_ predicts at its position.
void Detector::expect() {
  rest_ = 0;
  round_size_ = 0;
  moved_ = position_;
  if (walk_.at_end()) {
    look_further(walk_, limit_);
    iteration_ = position_;
  }
  is_at_end_ = walk_.at_end();
  if (is_at_end_) return;
  round_size_ = walk_.round();
  const std::uint32_t leaves = std::max(round_size_, 1u);
  steps_ = std::size_t{leaves} * columns_;
  if (round_.size() < 2 * steps_) round_.resize(2 * steps_);
  expected_ = round_.data();
  round_end_ = expected_ + steps_;
  std::array<std::int64_t, max_columns> values, steps;
  for (std::uint32_t n = 0; n < leaves; ++n) {
    walk_.round_values(n, values.data(), steps.data());
    for (std::uint32_t column = 0; column < columns_; ++column) {
      expected_[n * columns_ + column] = wrapped(values[column]);
      expected_[steps_ + n * columns_ + column] = wrapped(steps[column]);
    }
  }
  if (round_size_ > 0) rest_ = static_cast<std::uint64_t>(walk_.turns_left()) * round_size_ - 1;
}

/// Moves past the expected vector.
void Detector::advance() {
  if (rest_ > 0) {
    for (std::uint32_t column = 0; column < columns_; ++column) expected_[column] += expected_[steps_ + column];
    expected_ += columns_;
    if (expected_ == round_end_) expected_ = round_.data();
    --rest_;
    ++position_;
    return;
  }
  catch_up(walk_);
  ++position_;
  const std::int64_t turn = walk_.index(0);
  walk_.advance();
  if (!walk_.at_end() && walk_.index(0) != turn) iteration_ = position_;
  expect();
}

/// Moves `walk`, walk_ or a copy of it, to the position of expected_.
void Detector::catch_up(NestWalk& walk) const {
  if (round_size_ > 0) walk.skip(position_ - moved_, round_size_);
}

/// Ends the running nest before the expected vector. Complete turns remain in the nest; the incomplete turn becomes
/// separate terms. If another nest is then on top, it runs.
void Detector::stop_and_reduce() {
  is_running_ = false;
  const bool is_outermost = !is_at_end_ && round_size_ > 0 && walk_.depth() == 1;
  if (is_outermost) iteration_ = position_ - (position_ - moved_) % round_size_;
  if (!is_at_end_) catch_up(walk_);
  rest_ = 0;
  const std::int64_t turns = is_at_end_ ? limit_ : walk_.index(0);
  const std::uint64_t begun = is_at_end_ ? 0 : position_ - iteration_;
  if (begun == 0 && turns == stack_.view(stack_.top()).numbers[0]) return;  // unchanged since it began to run
  stack_.set_top(turns, position_ - begun - stack_.top().first);
  if (begun > 0) stack_.push_partial(walk_);
  if ((stack_.reduce() || begun > 0) && stack_.top_is_nest()) run_top();
}

// ---- exceptions ---------------------------------------------------------------------------------------------------

bool Detector::may_be_exception() const {
  return allows_exceptions_ && !is_at_end_ && position_ > began_ && position_ >= no_exceptions_before_ &&
         (nest_exceptions_ + 1) * per_exception <= position_ - stack_.top().first && foretells_possible();
}

/// Whether the vector that the nest foretells may be an element of it.
bool Detector::foretells_possible() const {
  return std::all_of(expected_, expected_ + unsigned_columns_,
                     [](std::uint64_t number) { return static_cast<std::int64_t>(number) >= 0; });
}

/// Holds back a mismatch, or a vector after it, as if the nest continued.
void Detector::await(const std::int64_t* stored, bool fits) {
  if (!is_waiting_) {
    is_waiting_ = true;
    saved_ = {walk_, limit_, iteration_, position_};
    catch_up(saved_.walk);
    if (round_size_ > 0 && walk_.depth() == 1) saved_.iteration = position_ - (position_ - moved_) % round_size_;
    misfits_ = fits_ = 0;
  }
  const std::size_t count = waiting_.size() / columns_;
  waiting_.insert(waiting_.end(), stored, stored + columns_);
  if (!fits) misfits_ |= 1u << count;
  fits_ = fits ? fits_ + 1 : 0;
  const bool is_impossible = !fits && !is_at_end_ && !foretells_possible();
  if (is_at_end_ || is_impossible || std::popcount(misfits_) > static_cast<int>(max_misfits)) return reject();
  advance();
  if (fits_ == fits_needed) return accept();
  if (count + 1 == max_waiting) reject();
}

/// Returns whether an exception at `position` continues an arithmetic sequence of exceptions: structure that the nest
/// lacks.
bool Detector::is_periodic(std::uint64_t position, const std::int64_t* vector) const {
  const std::size_t size = exceptions_.positions.size();
  if (nest_exceptions_ < 2) return false;
  const std::uint64_t* positions = exceptions_.positions.data() + size - 2;
  if (position - positions[1] != positions[1] - positions[0]) return false;
  const std::int64_t* values = exceptions_.values.data() + (size - 2) * columns_;
  for (std::uint32_t column = 0; column < columns_; ++column)
    if (wrapped(vector[column]) - wrapped(values[columns_ + column]) !=
        wrapped(values[columns_ + column]) - wrapped(values[column]))
      return false;
  return true;
}

void Detector::accept() {
  const std::uint64_t first = saved_.position;
  if (is_periodic(first, waiting_.data())) {
    no_exceptions_before_ = first + 4 * (first - exceptions_.positions.back()) + max_waiting;
    return reject();
  }
  for (std::size_t n = 0; n * columns_ < waiting_.size(); ++n) {
    if ((misfits_ >> n & 1) == 0) continue;
    const auto vector = waiting_.begin() + static_cast<std::ptrdiff_t>(n * columns_);
    exceptions_.positions.push_back(first + n);
    exceptions_.values.insert(exceptions_.values.end(), vector, vector + columns_);
    ++nest_exceptions_;
  }
  waiting_.clear();
  is_waiting_ = false;
}

/// Ends the nest where the first waiting vector arrived.
void Detector::reject() {
  walk_ = saved_.walk;
  limit_ = saved_.limit;
  iteration_ = saved_.iteration;
  position_ = saved_.position;
  is_at_end_ = false;
  round_size_ = 0;
  for (std::size_t n = waiting_.size(); n > 0; n -= columns_)
    replayed_.insert(replayed_.end(), waiting_.begin() + static_cast<std::ptrdiff_t>(n - columns_),
                     waiting_.begin() + static_cast<std::ptrdiff_t>(n));
  waiting_.clear();
  is_waiting_ = false;
  stop_and_reduce();
}

// ---- results ------------------------------------------------------------------------------------------------------

std::size_t Detector::predict(std::span<std::int64_t> out) const {
  if (!is_running_) return 0;
  NestWalk walk = walk_;
  std::int64_t limit = limit_;
  if (!walk.at_end()) catch_up(walk);
  std::array<std::uint64_t, max_columns> sums = sums_;
  std::size_t count = 0;
  for (; (count + 1) * columns_ <= out.size(); ++count) {
    if (walk.at_end()) look_further(walk, limit);
    if (walk.at_end()) break;
    std::int64_t* const vector = out.data() + count * columns_;
    walk.values(vector);
    walk.advance();
    for (std::uint32_t n = 0; n < followers_; ++n) {
      const auto [column, source] = follower_[n];
      vector[column] = static_cast<std::int64_t>(wrapped(vector[column]) + sums[column]);
      sums[column] = wrapped(vector[column]) + wrapped(vector[source]);
    }
  }
  return count;
}

double Detector::confidence() const {
  if (!is_running_) return 0;
  const auto foretold = static_cast<double>(position_ - began_), exceptions = static_cast<double>(nest_exceptions_);
  return (foretold + 1) / (foretold + 2 + 8 * exceptions) * (is_waiting_ ? 0.5 : 1);
}

std::size_t Detector::running_bytes() const {
  if (!is_running_) return 0;
  return stack_.top().nodes * sizeof(Node) + stack_.top().numbers * sizeof(std::int64_t);
}

Pattern Detector::finish() {
  const bool allowed = std::exchange(allows_exceptions_, false);
  if (is_waiting_) reject();
  replay();
  if (is_running_) {
    stop_and_reduce();
    is_running_ = false;
  }
  allows_exceptions_ = allowed;
  stack_.emit(builder_, exceptions_, true);
  exceptions_ = {};
  sums_ = {};
  position_ = no_exceptions_before_ = 0;
  rest_ = 0;
  return builder_.finish();
}

Pattern detect(std::span<const std::int64_t> vectors, const DetectOptions& options) {
  Detector detector(options);
  for (std::size_t at = 0; at + options.columns <= vectors.size(); at += options.columns)
    detector.push(vectors.subspan(at, options.columns));
  return detector.finish();
}

}  // namespace iosig
