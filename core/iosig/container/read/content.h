// All that the droppings of a container say, read and held against each other: the ground of reading and of checking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iosig/container/layout/container_directory.h"
#include "iosig/container/layout/index_frames.h"

namespace iosig {

/// Something that is not as it should be. Bytes that are lost stay lost; everything else can be read.
struct ContainerProblem {
  enum class Kind {
    lost,      ///< bytes that were written cannot be read: a dropping is missing, cut or changed
    unsynced,  ///< data without an index, of a writer that died before it noted them, or an unfinished frame
    absent,    ///< a writer that began has left nothing: it could not make its droppings, or they are all gone
    foreign,   ///< what does not belong there: foreign names, duplicates, droppings of another container
  };
  Kind kind = Kind::lost;
  std::int64_t id = -1;    ///< of the writer; -1: none
  std::string message;     ///< with the file
  std::int64_t bytes = 0;  ///< of data, where that is known
};

/// The index of one writer, with its tail's writes as the last element of `writes`, and the state of its droppings.
struct WriterContent : IndexContent {
  std::int64_t id = 0;
  std::int64_t data_bytes = -1;   ///< size of the data dropping; -1: there is none
  std::int64_t index_bytes = 0;   ///< size of the index dropping
  bool has_tail = false;          ///< its writer is at work, or died
  std::uint64_t tail_writes = 0;  ///< writes that only the tail knows

  /// Where the data dropping ends by what is known.
  [[nodiscard]] std::int64_t physical_end() const { return writes.empty() ? 0 : writes.back().physical_end; }
  /// Parts of the data, in order, that no frame tells of and repair has not given up: the last one, behind all frames,
  /// is of an unfinished write if there is a tail.
  [[nodiscard]] std::vector<IndexLoss> unindexed() const;
};

/// Writes and marks of one writer that no index tells of any more. Nobody knows which bytes of the file they changed.
struct LostWrites {
  std::int64_t id = 0;                ///< of the writer
  std::int64_t sequence = INT64_MAX;  ///< none of them has a greater number
  std::string message;                ///< with the dropping that should tell of them
};

struct ContainerContent {
  std::vector<WriterContent> writers;  ///< by id
  std::vector<ContainerProblem> problems;
  std::vector<LostWrites> lost_writes;  ///< each one a problem as well
  ContainerStatus status;               ///< of the droppings: without the size; the latest of their times

  /// Of the logical file, from the order of writes and marks.
  [[nodiscard]] std::int64_t size() const;
  /// The greatest in use; 0: none.
  [[nodiscard]] std::int64_t last_sequence() const;

  /// Lost writes that may have changed what is read from `physical` in the data of writer `id`, or from a hole, which
  /// is nobody's: -1. nullptr: there are none, and the byte is what it was. Takes the frame's least number for the
  /// write's.
  [[nodiscard]] const LostWrites* lost_over(std::int64_t id, std::int64_t physical) const;
  /// How many of the `length` bytes from `physical` on are there in the data of writer `id`.
  [[nodiscard]] std::int64_t bytes_there(std::int64_t id, std::int64_t physical, std::int64_t length) const;
  /// Lost writes that may have made the file longer, or shorter.
  [[nodiscard]] const LostWrites* lost_at_end() const;
};

/// Never fails as a whole: what cannot be read is a problem. Reads what writers note meanwhile, or not.
[[nodiscard]] ContainerContent read_content(const ContainerDirectory& directory);

}  // namespace iosig
