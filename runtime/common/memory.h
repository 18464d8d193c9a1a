// The library's own memory: every `new` in it is served from here, never by malloc, because a signal handler of the
// host may open a file while the thread is in the midst of malloc, and would wait for that lock for ever.
#pragma once

namespace iosig::runtime {

/// Around fork: the child then gets the memory in a sound state, whatever other threads did.
void lock_memory();
void unlock_memory();

}  // namespace iosig::runtime
