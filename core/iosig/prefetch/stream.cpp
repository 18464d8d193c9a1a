#include "iosig/prefetch/stream.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace iosig::prefetch {
namespace {

constexpr double weight = 1.0 / 16;                   ///< of a new value in an ageing mean
constexpr std::uint32_t useful_until_shallower = 64;  ///< in a row: then one read of the extra depth less

void age(double& mean, double value) { mean = mean == 0 ? value : mean + weight * (value - mean); }

bool is_within(const FileRead& read, const FileRead& other) {
  return read.offset >= other.offset && read.offset + read.length <= other.offset + other.length;
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  reads += other.reads;
  read_bytes += other.read_bytes;
  useful_bytes += other.useful_bytes;
  late_bytes += other.late_bytes;
  wasted_bytes += other.wasted_bytes;
  cached_bytes += other.cached_bytes;
  return *this;
}

Stream::Stream(std::shared_ptr<OwnFile> file, std::unique_ptr<ReadPredictor> predictor, Requests& requests,
               Budget& budget)
    : file_(std::move(file)),
      predictor_(std::move(predictor)),
      requests_(requests),
      budget_(budget),
      is_known_(predictor_->confidence() >= ReadPredictor::knows_beforehand) {
  // The first requests would only disturb the kernel's readahead.
  constexpr std::size_t looked_at = 16;
  std::optional<FileRead> before = is_known_ ? predictor_->expected(1) : std::nullopt;
  for (std::size_t n = 2; before && n <= looked_at; ++n) {
    const auto next = predictor_->expected(n);
    if (next) sequential_.add(next->offset == before->offset + before->length);
    before = next;
  }
}

Stream::~Stream() { drop_all(); }

bool Stream::is_quick(std::int64_t took_ns) const {
  return budget_.quick_ns > 0 && took_ns < budget_.quick_ns + last_length_;
}

void Stream::take_times(const ReadEvent& event) {
  if (event.took_before_ns > 0 && last_start_ns_ != 0) {
    if (!was_expected_) {
      was_quick_ = is_quick(event.took_before_ns);
      quick_.add(was_quick_);
      if (!was_quick_) age(latency_ns_, static_cast<double>(event.took_before_ns));
    }
    // A long pause says nothing of the pace.
    const std::int64_t think_ns = event.start_ns - last_start_ns_ - event.took_before_ns;
    if (think_ns >= 0 && think_ns < 1'000'000'000)
      age(think_ns_, static_cast<double>(think_ns) + 2'000 + 0.1 * static_cast<double>(event.length));
  }
  last_start_ns_ = event.start_ns;
}

void Stream::observe(const ReadEvent& event, bool is_newest) {
  const FileRead read{event.offset, event.length};
  if (read.length <= 0 || read.offset < 0 || read.offset > INT64_MAX - read.length) return;
  ++counts_.reads;
  counts_.read_bytes += static_cast<std::uint64_t>(read.length);
  ++observed_;
  take_times(event);
  const bool is_rest =
      matched_ && *matched_ != read && is_within(read, *matched_);  // of a record that is read in parts
  was_sequential_ = is_rest || (last_end_ < 0 ? was_quick_ : read.offset == last_end_);  // unknown after a gap
  if (last_end_ >= 0 && !is_rest) sequential_.add(was_sequential_);
  last_end_ = read.offset + read.length;
  last_length_ = read.length;
  if (is_rest)
    was_expected_ = true;
  else
    match(read, event.start_ns);
  right_in_row_ = next_ && *next_ == read ? right_in_row_ + 1 : 0;
  if (!predictor_->observe(read)) {
    drop_all();
    streak_ = 0;
  }
  next_ = predictor_->expected(1);
  if (!ahead_.empty() && next_ != ahead_.front().read) drop_all();  // the predictor has learned better
  judge();
  if (is_newest) look_ahead();
}

void Stream::match(const FileRead& read, std::int64_t start_ns) {
  was_expected_ = false;
  matched_.reset();
  constexpr std::size_t farthest = 8;
  const auto end = ahead_.begin() + static_cast<std::ptrdiff_t>(std::min(ahead_.size(), farthest));
  const auto found = std::find_if(ahead_.begin(), end, [&](const Ahead& each) { return is_within(read, each.read); });
  if (found == end) {
    if (!ahead_.empty()) streak_ = 0;
    return;
  }
  was_expected_ = true;
  matched_ = found->read;
  ++streak_;
  for (auto passed = ahead_.begin(); passed != found; ++passed) drop(*passed);
  bool is_late = false;
  for (const auto& piece : found->pieces) {
    budget_.used_bytes -= piece->length;
    ahead_bytes_ -= piece->length;
    const auto bytes = static_cast<std::uint64_t>(piece->length);
    if (piece->cancel() || piece->begun_ns > start_ns) {  // the program came first
      counts_.late_bytes += bytes;
      is_late = true;
      continue;
    }
    const Request::State state = piece->state;
    cached_.add(state == Request::State::cached);
    if (state == Request::State::cached) {
      counts_.cached_bytes += bytes;
    } else if (state == Request::State::done && piece->done_ns <= start_ns) {
      counts_.useful_bytes += bytes;
      age(latency_ns_, static_cast<double>(piece->done_ns - piece->begun_ns));
    } else {
      counts_.late_bytes += bytes;
      is_late = state != Request::State::failed || is_late;
    }
  }
  if (is_late && found->distance < depth_in_time()) {
    useful_in_row_ = 0;  // it was requested as soon as the pattern was known
  } else if (is_late) {
    extra_depth_ = std::min(extra_depth_ + 1, 16U);
    useful_in_row_ = 0;
  } else if (++useful_in_row_ >= useful_until_shallower && extra_depth_ > 0) {
    --extra_depth_;
    useful_in_row_ = 0;
  }
  ahead_.erase(ahead_.begin(), found + 1);
}

void Stream::drop(Ahead& given_up) {
  for (const auto& piece : given_up.pieces) {
    budget_.used_bytes -= piece->length;
    ahead_bytes_ -= piece->length;
    if (!piece->cancel() && piece->state != Request::State::cached && piece->state != Request::State::failed)
      counts_.wasted_bytes += static_cast<std::uint64_t>(piece->length);
  }
}

void Stream::drop_all() {
  for (Ahead& each : ahead_) drop(each);
  ahead_.clear();
}

void Stream::judge() {
  if (observed_ < 4 && !is_known_) return;
  constexpr double min_confidence = 0.6;
  constexpr std::uint32_t min_right = 4;  ///< in a row: enough to begin, long before the confidence has grown
  const std::string_view before = why_;
  if (!before.empty() && cached_.is_above(0.9) && quick_.is_below(0.5)) cached_ = {};  // its reads have become slow
  if (sequential_.is_above(0.8))
    why_ = "sequential: the kernel's readahead serves it";
  else if (quick_.is_above(0.9) || cached_.is_above(0.9))
    why_ = "its reads are quick: the data are in memory";
  else if (right_in_row_ < min_right && predictor_->confidence() < min_confidence)
    why_ = "no pattern: its reads cannot be foreseen";
  else
    why_ = {};
  if (why_.empty()) {
    budget_.is_wanted = true;
    if (budget_.total_bytes == 0) why_ = "less than 32 MiB of memory is free";
  }
  if (!why_.empty() && before.empty()) drop_all();
  if (why_.empty()) skipped_rounds_ = 0;
}

std::size_t Stream::depth_in_time() const {
  const double latency = latency_ns_ == 0 ? 1e6 : latency_ns_, think = std::max(think_ns_, 1'000.0);
  return static_cast<std::size_t>(std::min(std::ceil(latency / think + 0.5), double{max_depth}));
}

std::size_t Stream::wanted_depth() const {
  const std::size_t in_time = depth_in_time();
  const std::size_t extra = std::min<std::size_t>(extra_depth_, std::max<std::size_t>(1, in_time / 2));
  const std::size_t trusted = (is_known_ ? 16 : 2) + 2 * std::size_t{streak_};
  return std::min({in_time + extra, trusted, max_depth});
}

void Stream::refill() {
  if (size_age_-- == 0) {
    file_size_ = file_->size();
    size_age_ = 64;
  }
  const std::size_t depth = wanted_depth();
  while (ahead_.size() < depth) {
    const auto next = predictor_->expected(ahead_.size() + 1);
    if (!next || next->offset < 0 || next->length <= 0 || next->offset > INT64_MAX - next->length) return;
    Ahead added{*next, ahead_.size() + 1, {}};
    const std::int64_t end = std::min(next->offset + next->length, file_size_);
    const bool is_covered = !ahead_.empty() && is_within(*next, ahead_.back().read);
    const std::int64_t bytes = is_covered ? 0 : std::max<std::int64_t>(end - next->offset, 0);
    if (bytes > std::min(budget_.stream_bytes, budget_.total_bytes))
      why_ = "a read is larger than what may be prefetched";
    if (bytes > 0 && (ahead_bytes_ + bytes > budget_.stream_bytes || budget_.used_bytes + bytes > budget_.total_bytes))
      return;
    for (std::int64_t done = 0; done < bytes; done += max_piece_bytes) {
      auto piece = std::make_shared<Request>();
      piece->file = file_;
      piece->offset = next->offset + done;
      piece->length = std::min(max_piece_bytes, bytes - done);
      budget_.used_bytes += piece->length;
      ahead_bytes_ += piece->length;
      requests_.add(piece);
      added.pieces.push_back(std::move(piece));
      was_prefetched_ = true;
    }
    ahead_.push_back(std::move(added));
  }
}

std::uint32_t Stream::reads_to_skip() {
  constexpr std::uint32_t looked_at = 32, least = 256;
  if (sequential_.is_above(0.8) && !why_.empty() && observed_ >= 8 && !quick_.is_above(0.9)) {
    observed_ = 0;
    last_end_ = -1;
    return 24;
  }
  if (why_.empty() || observed_ < looked_at || !quick_.is_above(0.9)) return 0;
  observed_ = 0;
  quick_ = cached_ = {};  // judged afresh
  last_end_ = -1;
  skipped_rounds_ = std::min(skipped_rounds_ + 1, 5U);
  return least << (skipped_rounds_ - 1);
}

std::uint64_t Stream::slack() const {
  // The program's thread pays for the wake-up; without one, the planner looks every few milliseconds.
  if (!why_.empty() && quick_.is_above(0.9)) return was_quick_ ? 64 : 1;
  if (!why_.empty() && sequential_.is_above(0.8)) return is_left_alone() && was_sequential_ ? 64 : 1;
  if (!why_.empty()) return is_left_alone() ? 8 : 1;
  const std::size_t depth = wanted_depth();
  return std::clamp<std::uint64_t>(depth / 8, 1, 4);
}

}  // namespace iosig::prefetch
