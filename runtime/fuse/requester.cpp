#include "requester.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <map>

#include "iosig/base/text.h"

namespace iosig::fuse {
namespace {

constexpr auto facts_limit = std::chrono::milliseconds(200);
constexpr std::uint64_t max_facts_bytes = 4u << 20;

std::string proc_text(pid_t id, const char* name) {
  auto text = read_file(fmt::format("/proc/{}/{}", id, name), max_facts_bytes);
  return text ? std::move(*text) : std::string();
}

std::string linked(pid_t id, const char* name) {
  std::array<char, PATH_MAX> target{};
  const ssize_t length = ::readlink(fmt::format("/proc/{}/{}", id, name).c_str(), target.data(), target.size());
  return length <= 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(length));
}

/// The number after `key` in /proc/PID/status.
pid_t number_after(std::string_view status, std::string_view key) {
  const std::size_t at = status.find(key);
  if (at == std::string_view::npos) return 0;
  const auto words = words_of(status.substr(at + key.size(), 24));
  return words.empty() ? 0 : static_cast<pid_t>(parse_count(words[0]).value_or(0));
}

void add_first(trace::Facts& facts, const char* key, const std::map<std::string_view, std::string_view>& environment,
               std::span<const char* const> variables) {
  for (const char* each : variables)
    if (const auto found = environment.find(each); found != environment.end()) {
      facts.emplace_back(key, found->second);
      return;
    }
}

trace::Facts read_facts(pid_t pid) {
  trace::Facts facts;
  const std::string variables = proc_text(pid, "environ"), arguments = proc_text(pid, "cmdline");
  std::map<std::string_view, std::string_view> environment;
  for (const std::string_view each : split(variables, '\0'))
    if (const std::size_t equals = each.find('='); equals != std::string_view::npos)
      environment.emplace(each.substr(0, equals), each.substr(equals + 1));
  add_first(facts, "rank", environment, trace::rank_variables);
  add_first(facts, "size", environment, trace::size_variables);
  for (const char* each : trace::job_variables) add_first(facts, each, environment, {&each, 1});
  if (!arguments.empty())
    for (const std::string_view each : split(std::string_view(arguments).substr(0, arguments.size() - 1), '\0'))
      facts.emplace_back("argument", each);
  return facts;
}

}  // namespace

std::uint64_t begin_of(pid_t tid) {
  const std::string stat = proc_text(tid, "stat");
  const std::size_t name_end = stat.rfind(')');  // the name may have blanks and parentheses
  if (name_end == std::string::npos) return 0;
  const auto fields = words_of(std::string_view(stat).substr(name_end + 1));
  constexpr std::size_t start_time = 22 - 3;  // proc(5) counts from 1; the third field is the first here
  return fields.size() <= start_time ? 0 : parse_count<std::uint64_t>(fields[start_time]).value_or(0);
}

std::string program_of(pid_t tid) {
  if (std::string path = linked(tid, "exe"); !path.empty()) return path;
  const std::string name = proc_text(tid, "comm");
  return name.empty() ? std::string() : fmt::format("[{}]", trimmed(name));
}

std::optional<Requester> requester_of(pid_t tid) {
  Requester found;
  const std::string status = proc_text(tid, "status");
  found.pid = number_after(status, "\nTgid:");
  found.parent_pid = number_after(status, "\nPPid:");
  found.thread_began = begin_of(tid);
  found.process_began = found.pid == tid ? found.thread_began : begin_of(found.pid);
  found.program = program_of(tid);
  if (found.pid == 0 || found.thread_began == 0) return std::nullopt;
  return found;
}

bool is_alive(pid_t pid, pid_t tid) { return ::syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM; }

FactsReader::~FactsReader() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  asked_.notify_one();
  thread_.join();
}

trace::Facts FactsReader::facts_of(pid_t pid) {
  const auto deadline = std::chrono::steady_clock::now() + facts_limit;
  std::unique_lock lock(mutex_);
  if (!free_.wait_until(lock, deadline, [&] { return !pid_; })) return {};
  pid_ = pid;
  is_awaited_ = true;
  asked_.notify_one();
  trace::Facts facts;
  if (answered_.wait_until(lock, deadline, [&] { return answer_.has_value(); })) {
    facts = *std::exchange(answer_, std::nullopt);
    pid_.reset();
    free_.notify_one();
  } else {
    is_awaited_ = false;
  }
  return facts;
}

void FactsReader::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    asked_.wait(lock, [&] { return is_over_ || (pid_ && !answer_); });
    if (is_over_) return;
    const pid_t pid = *pid_;
    lock.unlock();
    trace::Facts facts = read_facts(pid);
    lock.lock();
    if (is_awaited_) {
      answer_ = std::move(facts);
      answered_.notify_one();
    } else {
      pid_.reset();
      free_.notify_one();
    }
  }
}

}  // namespace iosig::fuse
