#include "perform.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <new>

#include "iosig/base/origin.h"
#include "iosig/base/units.h"

namespace iosig::workloads {
namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<std::byte>;

/// What stands in the file after a rank's writes: pieces by their beginning, the newest on top.
class Newest {
 public:
  void put(std::uint64_t begin, std::uint64_t end, WriteOrigin origin) {
    if (begin == end) return;
    cut_at(begin);
    cut_at(end);
    pieces_.erase(pieces_.lower_bound(begin), pieces_.lower_bound(end));
    pieces_[begin] = {end, origin};
  }
  struct Piece {
    std::uint64_t end;
    WriteOrigin origin;
  };
  [[nodiscard]] const std::map<std::uint64_t, Piece>& pieces() const { return pieces_; }

 private:
  /// No piece goes on across `place` after this.
  void cut_at(std::uint64_t place) {
    auto after = pieces_.lower_bound(place);
    if (after == pieces_.begin()) return;
    Piece& before = std::prev(after)->second;
    if (before.end <= place) return;
    pieces_.emplace_hint(after, place, before);
    before.end = place;
  }

  std::map<std::uint64_t, Piece> pieces_;
};

/// One rank at work.
class Worker {
 public:
  Worker(std::uint32_t rank, File& file) : rank_(rank), file_(file) {}

  Result<void> write(std::uint64_t offset_bytes, std::uint64_t length_bytes, WriteOrigin origin) {
    bytes_.resize(length_bytes);
    fill(bytes_, origin, offset_bytes);
    const auto begin = Clock::now();
    auto written = file_.write(offset_bytes, bytes_);
    count(begin);
    return written;
  }

  Result<void> read(std::uint64_t offset_bytes, std::uint64_t length_bytes) {
    bytes_.resize(length_bytes);
    const auto begin = Clock::now();
    auto got = file_.read(offset_bytes, bytes_);
    count(begin);
    return got;
  }

  Result<void> verify(std::uint64_t offset_bytes, std::uint64_t length_bytes, WriteOrigin origin) {
    if (auto got = read(offset_bytes, length_bytes); !got) return got;
    expected_.resize(length_bytes);
    fill(expected_, origin, offset_bytes);
    if (bytes_ == expected_) return {};
    const auto [wrong, right] = std::ranges::mismatch(bytes_, expected_);
    return fail(ErrorKind::infeasible, "byte {} is {:#04x}, but rank {} wrote {:#04x} there, with its access {}",
                offset_bytes + static_cast<std::uint64_t>(wrong - bytes_.begin()), static_cast<unsigned>(*wrong),
                origin.rank, static_cast<unsigned>(*right), origin.sequence);
  }

  [[nodiscard]] const Tally& tally() const { return tally_; }
  [[nodiscard]] WriteOrigin origin(const Extent& extent, std::uint64_t sequence) const {
    return extent.is_shared ? WriteOrigin{} : WriteOrigin{rank_, sequence};
  }

 private:
  void count(Clock::time_point begin) {
    tally_.in_calls_s += std::chrono::duration<double>(Clock::now() - begin).count();
    ++tally_.operations;
    tally_.bytes += bytes_.size();
  }

  std::uint32_t rank_;
  File& file_;
  Tally tally_;
  Bytes bytes_, expected_;
};

tl::unexpected<Error> stopped() { return fail(ErrorKind::system, "interrupted"); }

Result<Tally> perform_all(const Plan& plan, Phase phase, std::uint32_t rank, File& file,
                          const std::function<bool()>& is_stopped) {
  Worker worker(rank, file);
  Newest newest;
  Walk walk = plan.walk(rank);
  for (std::uint64_t sequence = 0; const auto extent = walk.next(); ++sequence) {
    if (is_stopped()) return stopped();
    if (extent->length_bytes > largest_access_bytes)
      return fail(ErrorKind::bad_input, "an access of {} is too large to be performed; at most {}",
                  bytes_text(extent->length_bytes), bytes_text(largest_access_bytes));
    const WriteOrigin origin = worker.origin(*extent, sequence);
    Result<void> done;
    if (phase == Phase::write)
      done = worker.write(extent->offset_bytes, extent->length_bytes, origin);
    else if (phase == Phase::read)
      done = worker.read(extent->offset_bytes, extent->length_bytes);
    else if (!plan.is_repeating)
      done = worker.verify(extent->offset_bytes, extent->length_bytes, origin);
    else
      newest.put(extent->offset_bytes, extent->offset_bytes + extent->length_bytes, origin);
    if (!done) return pass_on(done.error());
  }
  for (const auto& [begin, piece] : newest.pieces()) {
    if (is_stopped()) return stopped();
    if (const auto done = worker.verify(begin, piece.end - begin, piece.origin); !done) return pass_on(done.error());
  }
  return worker.tally();
}

}  // namespace

std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::write: return "write";
    case Phase::read: return "read";
    case Phase::verify: return "verify";
  }
  return "";
}

Tally& Tally::operator+=(const Tally& other) {
  operations += other.operations;
  bytes += other.bytes;
  in_calls_s = std::max(in_calls_s, other.in_calls_s);
  return *this;
}

Result<Tally> perform(const Plan& plan, Phase phase, std::uint32_t rank, File& file,
                      const std::function<bool()>& is_stopped) try {
  return perform_all(plan, phase, rank, file, is_stopped);
} catch (const std::bad_alloc&) {
  return fail(ErrorKind::system, "there is no memory for the data of rank {}", rank);
}

}  // namespace iosig::workloads
