// A bounded queue from the threads of a program, which tell what they read, to the thread that plans prefetches.
//
// push() takes no lock, allocates nothing and never waits: a signal handler may call it between any two instructions.
// A full queue loses the event. The bounded queue of D. Vyukov: a cell's number says whose turn it is.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace iosig::prefetch {

struct ReadEvent {
  enum class Kind : std::uint8_t {
    read,
    opened,  ///< `offset` is the file's inode number, `length` its device
    closed,
    report,  ///< a thread waits for the report
  };
  Kind kind = Kind::read;
  std::int32_t fd = 0;       ///< of the program
  std::uint32_t file = 0;    ///< number of the opened file; never used again
  std::uint32_t thread = 0;  ///< number of the thread that reads
  std::int64_t offset = 0, length = 0;
  std::int64_t start_ns = 0;
  std::int64_t took_before_ns = 0;  ///< an earlier read of this file, if possible the thread's; 0: unknown
};

class ReadQueue {
 public:
  static constexpr std::uint64_t capacity = 2048;

  constexpr ReadQueue() = default;

  /// Returns how many events wait; 0: the queue was full and the event is lost.
  std::uint64_t push(const ReadEvent& event) {
    std::uint64_t place = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[place % capacity];
      const std::uint64_t turn = cell.turn.load(std::memory_order_acquire);
      // A cell's turn is the round in which it may be filled, times two; plus one when it is full.
      const std::uint64_t round = 2 * (place / capacity);
      if (turn < round) return 0;
      if (turn == round && tail_.compare_exchange_weak(place, place + 1, std::memory_order_relaxed)) {
        cell.event = event;
        cell.turn.store(round + 1, std::memory_order_release);
        return place + 1 - head_.load(std::memory_order_relaxed);
      }
      if (turn > round) place = tail_.load(std::memory_order_relaxed);
    }
  }

  /// Takes the oldest event. Only one thread may call this. false: there is none.
  bool pop(ReadEvent& event) {
    const std::uint64_t place = head_.load(std::memory_order_relaxed);
    Cell& cell = cells_[place % capacity];
    const std::uint64_t round = 2 * (place / capacity);
    if (cell.turn.load(std::memory_order_acquire) != round + 1) return false;
    event = cell.event;
    cell.turn.store(round + 2, std::memory_order_release);
    head_.store(place + 1, std::memory_order_relaxed);
    return true;
  }

  [[nodiscard]] std::uint64_t size() const {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] bool was_used() const { return tail_.load(std::memory_order_relaxed) != 0; }

  /// In a child made by fork(): its parent's events are none of its own.
  void reset() {
    for (Cell& cell : cells_) cell.turn.store(0, std::memory_order_relaxed);
    head_.store(0, std::memory_order_relaxed);
    tail_.store(0, std::memory_order_release);
  }

 private:
  struct Cell {
    std::atomic<std::uint64_t> turn{0};
    ReadEvent event;
  };
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<std::uint64_t> head_{0};
  std::array<Cell, capacity> cells_{};
};

}  // namespace iosig::prefetch
