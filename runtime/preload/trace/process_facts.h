// What a trace says of a process: program, arguments, rank, the variables of the job.
#pragma once

#include <cstdint>
#include <string_view>

#include "preload/trace/recorder.h"

namespace iosig::preload::trace {

/// Writes the facts to the process's first part.
void write_process_facts(ThreadPart& part);

/// Whether the process is rank 0, or none of a parallel job: it speaks for all.
[[nodiscard]] bool is_first_rank();

/// The node's name; "" before remember_machine().
[[nodiscard]] std::string_view host_name();
/// The first 8 bytes of the kernel's boot id as a number; 0: unknown. Parts with equal ones share their clock.
[[nodiscard]] std::uint64_t boot_number();

/// Asks for what the two functions above return, and keeps the program's arguments. Called when the library is loaded.
void remember_machine(int argument_count, char** arguments);

}  // namespace iosig::preload::trace
