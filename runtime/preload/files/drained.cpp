#include "preload/files/drained.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "host/process.h"
#include "host/table_section.h"
#include "host/unseen_process.h"
#include "iosig/enact/drain_request.h"
#include "preload/files/process_files.h"
#include "preload/hooks/real.h"

namespace iosig::preload {

IOSIG_TABLE constinit std::array<std::atomic<std::uint64_t>, max_fds> drained_ids{};
constinit std::atomic<int> last_drained_fd{-1};

namespace {

constexpr const char* program_variable = "IOSIG_PROGRAM";

const char* program = nullptr;  ///< what starts drains; null: nothing does
/// From put_path_of_requests(), when the program began: the calls that need it may have a signal handler's small stack.
std::array<char, 512> path_of_requests{};
/// The environment of the drain: a copy from when the first drained file was opened. Never destroyed.
constinit std::atomic<const std::vector<std::string>*> environment_kept{nullptr};

/// The iosig command is no program of the job: it runs without this library, and records nothing.
bool is_passed_on(std::string_view setting) {
  return !setting.starts_with("LD_") && !setting.starts_with("IOSIG_TRACE") &&
         !setting.starts_with("IOSIG_CONTAINERS=") && !setting.starts_with("IOSIG_RULES=");
}

__attribute__((constructor(102))) void find_program() {
  const std::string_view value = runtime::kept_setting(program_variable);
  if (!value.starts_with('/')) return;
  program = value.data();
  put_path_of_requests(path_of_requests);
}

/// Must run isolated.
void keep_environment() {
  if (environment_kept.load() != nullptr) return;
  auto* const settings = new std::vector<std::string>;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each)
    if (is_passed_on(*each)) settings->emplace_back(*each);
  const std::vector<std::string>* expected = nullptr;
  if (!environment_kept.compare_exchange_strong(expected, settings)) delete settings;
}

/// Runs `step` isolated, unless that is impossible in this thread or child.
template <class Step>
void isolated(Step step) {
  if (process_of_now == nullptr || is_stray_child()) return;
  const runtime::ErrnoKept kept;
  const EngineGuard inside;
  if (!inside) return;
  (void)run_isolated_step([&] {
    step();
    return 0;
  });
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  pointers.push_back(nullptr);
  return pointers;
}

/// Whether another descriptor of this process leads to the file.
bool has_other(std::uint64_t id) {
  const auto* const first = drained_ids.begin();
  return std::find(first, first + last_drained_fd + 1, id) != first + last_drained_fd + 1;
}

void start_drain(std::uint64_t id) {
  if (runtime::inherits_orphans()) return;
  const auto path = path_to_drain(id);
  const std::vector<std::string>* const settings = environment_kept;
  if (!path || settings == nullptr) return;
  const std::vector<std::string> command{program, "finalize", "--background", "--", *path};
  const auto words = pointers_to(command);
  const auto environment = pointers_to(*settings);
  const runtime::UnseenProcess started({.words = words.data(), .environment = environment.data()});
}

}  // namespace

bool starts_drains() { return program != nullptr; }

bool may_start_drains() {
  static constinit std::atomic<std::int64_t> looked_s{0};
  static constinit std::atomic<bool> has_requests{false};
  if (program == nullptr) return false;
  timespec now{};
  (void)::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  const std::int64_t this_second = now.tv_sec + 1;
  if (looked_s != this_second) {  // threads that come before the answer look, too
    const runtime::ErrnoKept kept;
    if (path_of_requests.front() != '\0')
      has_requests = ::syscall(SYS_faccessat, AT_FDCWD, path_of_requests.data(), F_OK) == 0;
    else
      isolated([] { has_requests = has_drain_requests(); });
    looked_s = this_second;
  }
  return has_requests;
}

void remember_drained(int fd) {
  if (static_cast<unsigned>(fd) >= max_fds || is_stray_child()) return;
  const std::uint64_t id = redirect_behind(fd);
  if (id == 0 && !is_drained(fd)) return;
  if (id != 0) isolated(keep_environment);
  drained_ids[static_cast<unsigned>(fd)] = id;
  for (int last = last_drained_fd; last < fd && !last_drained_fd.compare_exchange_weak(last, fd);) {
  }
}

std::uint64_t Closing::forget(int fd) {
  return is_stray_child() ? 0 : drained_ids[static_cast<unsigned>(fd)].exchange(0);
}

void Closing::start() const {
  if (!has_other(id_)) isolated([&] { start_drain(id_); });
}

void start_drains(Before what) {
  for (int fd = 0; fd <= last_drained_fd; ++fd) {
    if (!is_drained(fd)) continue;
    if (what == Before::exec && (real().fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) continue;
    isolated([&] { start_drain(drained_ids[static_cast<unsigned>(fd)]); });
  }
}

}  // namespace iosig::preload
