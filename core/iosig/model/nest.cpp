#include "iosig/model/nest.h"

#include "iosig/model/nest_count.h"

namespace iosig {

using nest_count::Differences;
using nest_count::differences_of;
using nest_count::tally_of;

void NestWalk::start(const NestView& nest, std::uint32_t root, std::int64_t index, std::int64_t trips) {
  nest_ = nest;
  root_ = root;
  depth_ = 0;
  trips_[0] = trips;
  if (index >= trips) return;
  enter(root, index, trips);
  settle(root + 1);
}

void NestWalk::go_on(std::int64_t trips) {
  const std::int64_t index = trips_[0];
  if (index >= trips) return;
  enter(root_, index, trips);
  settle(root_ + 1);
}

/// Moves to the first leaf from `node` on.
void NestWalk::settle(std::uint32_t node) {
  for (;;) {
    while (node == nest_.nodes[loop_[depth_ - 1]].end) {
      const std::size_t inner = depth_ - 1;
      if (++index_[inner] < trips_[inner]) {
        node = loop_[inner] + 1;
      } else {
        --depth_;
        if (depth_ == 0) return;
      }
    }
    if (!nest_.nodes[node].is_loop) {
      leaf_ = node;
      return;
    }
    const std::int64_t trips = affine(nest_.numbers + nest_.nodes[node].numbers, index_.data(), depth_);
    if (trips <= 0) {
      node = nest_.nodes[node].end;
    } else {
      enter(node, 0, trips);
      ++node;
    }
  }
}

namespace {

/// Returns the number of elements of `node` if no trip count in it depends on a loop, otherwise 0.
std::uint64_t constant_count(const NestView& nest, std::uint32_t node, std::size_t depth) {
  const Node& it = nest.nodes[node];
  if (!it.is_loop) return 1;
  const std::int64_t* numbers = nest.numbers + it.numbers;
  for (std::size_t d = 0; d < depth; ++d)
    if (numbers[d + 1] != 0) return 0;
  std::uint64_t body = 0;
  for (std::uint32_t child = node + 1; child < it.end; child = nest.nodes[child].end) {
    const std::uint64_t count = constant_count(nest, child, depth + 1);
    if (count == 0) return 0;
    body += count;
  }
  return body * static_cast<std::uint64_t>(numbers[0]);
}

}  // namespace

/// As seek(), for constant trip counts: one division per loop.
void NestWalk::seek_constant(std::uint64_t left) {
  for (std::uint32_t node = root_; nest_.nodes[node].is_loop;) {
    const std::int64_t trips = nest_.numbers[nest_.nodes[node].numbers];
    const std::uint64_t body = constant_count(nest_, node, depth_) / static_cast<std::uint64_t>(trips);
    enter(node, static_cast<std::int64_t>(left / body), trips);
    left %= body;
    ++node;
    for (std::uint64_t count = 0; left >= (count = constant_count(nest_, node, depth_)); node = nest_.nodes[node].end)
      left -= count;
    leaf_ = node;
  }
}

void NestWalk::seek(const NestView& nest, std::uint32_t root, std::uint64_t offset) {
  nest_ = nest;
  root_ = root;
  depth_ = 0;
  if (constant_count(nest, root, 0) > 0) return seek_constant(offset);
  nest_count::Indices at{};
  auto left = static_cast<__int128>(offset);
  for (std::uint32_t node = root; nest.nodes[node].is_loop;) {
    const std::int64_t trips = affine(nest.numbers + nest.nodes[node].numbers, at.data(), depth_);
    const Differences body = differences_of(nest, node, at, depth_, trips);
    std::int64_t index = 0;
    if (body.degree == 0) {
      index = static_cast<std::int64_t>(left / body.of[0].elements);
    } else {
      std::int64_t above = trips;  // the last iteration that begins at or before `left`: in [index, above)
      while (above - index > 1) {
        const std::int64_t middle = index + (above - index) / 2;
        (body.sum(middle).elements <= left ? index : above) = middle;
      }
    }
    left -= body.sum(index).elements;
    at[depth_] = index;
    enter(node, index, trips);
    ++node;
    for (__int128 count = 0; left >= (count = tally_of(nest, node, at, depth_).elements); node = nest.nodes[node].end)
      left -= count;
    leaf_ = node;
  }
}

}  // namespace iosig
