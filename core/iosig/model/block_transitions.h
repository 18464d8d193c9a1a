// How often one block of a file was read right after another: the Markov model of Oly and Reed, which predicts reads.
//
// Plain data. Source: docs/references.md#pattern section 4.3, whose N x N matrix is kept as its entries that are not 0.
#pragma once

#include <cstdint>
#include <vector>

namespace iosig {

inline constexpr std::int64_t default_markov_block_bytes = 8192;  ///< section 5.2 of the paper

struct BlockTransition {
  std::int64_t from = 0, to = 0;  ///< numbers of blocks, from 0
  std::uint32_t count = 0;        ///< never 0

  bool operator==(const BlockTransition&) const = default;
};

struct BlockTransitions {
  std::int64_t block_bytes = default_markov_block_bytes;  ///< > 0
  std::vector<BlockTransition> transitions;               ///< sorted by `from`, then `to`; each pair once

  bool operator==(const BlockTransitions&) const = default;
};

}  // namespace iosig
