// The planner: the thread that takes what the program's threads read (observer.h) and decides by streams (stream.h)
// what is prefetched (requests.h). All that it has is its own; the program's threads see nothing of it but the queue.
#pragma once

namespace iosig::prefetch {

class Observer;

/// Runs until the observer is stopped, or the process ends. Called in a thread of its own.
void run_planner(Observer& observer);

}  // namespace iosig::prefetch
