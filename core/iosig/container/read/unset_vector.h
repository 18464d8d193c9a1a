// A vector whose elements begin without a value.
#pragma once

#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace iosig {

template <class T>
struct UnsetAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = UnsetAllocator<U>;
  };
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
};

/// resize() writes no element, so that each thread is the first to touch its own pages.
template <class T>
using UnsetVector = std::vector<T, UnsetAllocator<T>>;

}  // namespace iosig
