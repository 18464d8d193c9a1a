#include "preload/hooks/real.h"

#include <dlfcn.h>

namespace iosig::preload {

constinit Real found_functions{};
constinit std::atomic<bool> are_functions_found{false};

namespace {

template <class Function>
void find(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

void find_functions() {  // harmless if two threads do it at the same time
  Real& found = found_functions;
#include "find.inc"
  are_functions_found.store(true, std::memory_order_release);
}

}  // namespace iosig::preload
