#include "iosig/trace/import/trace_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "iosig/base/text.h"
#include "iosig/trace/trace.h"

namespace iosig::trace {
namespace {

constexpr std::uint64_t max_unwritten_calls = 400'000;

tl::unexpected<Error> refuse_existing(const std::string& path) {
  return fail(ErrorKind::usage, "'{}' exists; name another directory with -o, or remove it", printable(path));
}

tl::unexpected<Error> interrupted() { return fail(ErrorKind::system, "interrupted"); }

}  // namespace

TraceWriter::TraceWriter(std::string path, std::string draft, Fd directory)
    : path_(std::move(path)),
      draft_(std::move(draft)),
      directory_(std::make_unique<const Fd>(std::move(directory))),
      packing_(std::make_unique<Packing>()) {
  std::random_device random;
  first_key_ = (std::uint64_t{random()} << 32 | random()) | 1;
}

TraceWriter::~TraceWriter() {
  if (!draft_.empty()) remove_tree(draft_);
}

Result<TraceWriter> TraceWriter::make(const std::string& path) {
  const std::string plain(without_trailing_slashes(path));
  if (plain.empty()) return fail(ErrorKind::usage, "-o: expected a directory to make, e.g. -o job.trace");
  struct stat status {};
  if (::lstat(plain.c_str(), &status) == 0) {
    const Fd directory(::open(plain.c_str(), directory_flags));
    if (!directory) return refuse_existing(plain);
    const auto names = names_in(directory);
    if (!names) return pass_on(names.error());
    if (!names->empty()) return refuse_existing(plain);
  }
  const std::size_t slash = plain.rfind('/');
  const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
  std::string draft = fmt::format("{}.{}.XXXXXX", plain.substr(0, name), plain.substr(name));
  if (::mkdtemp(draft.data()) == nullptr) return system_failure("make", plain);
  Fd directory(::open(draft.c_str(), directory_flags));
  if (!directory) {
    auto failed = system_failure("open", draft);
    ::rmdir(draft.c_str());
    return failed;
  }
  return TraceWriter(plain, std::move(draft), std::move(directory));
}

TraceWriter::ProcessNumber TraceWriter::add_process(std::string host, std::int32_t pid, std::int32_t parent_pid) {
  processes_.push_back({.host = std::move(host),
                        .pid = pid,
                        .parent_pid = parent_pid,
                        .parts = 0,
                        .lost_calls = 0,
                        .facts = {},
                        .names = {}});
  return static_cast<ProcessNumber>(processes_.size() - 1);
}

void TraceWriter::add_fact(ProcessNumber process, std::string_view key, std::string value) {
  Facts& facts = processes_[process].facts;
  const auto known = std::ranges::find(facts, key, [](const auto& fact) { return std::string_view(fact.first); });
  if (key == "argument" || known == facts.end())
    facts.emplace_back(key, std::move(value));
  else
    known->second = std::move(value);
}

TraceWriter::ThreadNumber TraceWriter::add_thread(ProcessNumber process, std::int32_t tid) {
  threads_.push_back({.process = process, .tid = tid, .part = {}});
  return static_cast<ThreadNumber>(threads_.size() - 1);
}

Result<void> TraceWriter::make_part(ThreadState& thread, std::uint64_t start) {
  ProcessState& process = processes_[thread.process];
  auto made = PartWriter::make(*directory_, path_,
                               {.host = process.host,
                                .process = first_key_ + thread.process,
                                .pid = process.pid,
                                .parent_pid = process.parent_pid,
                                .tid = thread.tid,
                                .first = {start, start},
                                .realtime_ns = start},
                               ++process.parts);
  if (!made) return pass_on(made.error());
  thread.part.emplace(std::move(*made));
  return {};
}

std::uint32_t TraceWriter::name_of_path(ThreadState& thread, std::string_view path) {
  if (path.empty()) return 0;
  const std::uint32_t number =
      paths_.try_emplace(std::string(path), static_cast<std::uint32_t>(paths_.size())).first->second;
  auto& names = processes_[thread.process].names;
  const auto [known, is_new] = names.try_emplace(number, static_cast<std::uint32_t>(names.size() + 1));
  if (is_new) thread.part->add_name(known->second, path);
  return known->second;
}

Result<void> TraceWriter::add(ThreadNumber number, Slot call, std::string_view path, std::string_view second,
                              std::uint64_t id) {
  if (is_interrupted_ && is_interrupted_()) return interrupted();
  ThreadState& thread = threads_[number];
  if (!thread.part)
    if (auto made = make_part(thread, call.start); !made) return made;
  call.path = name_of_path(thread, path);
  if (!second.empty()) call.length = name_of_path(thread, second);
  if (auto added = thread.part->add(call, id, *packing_); !added) return pass_on(added.error());
  ++calls_;
  least_start_ = std::min(least_start_, call.start);
  return ++unwritten_ == max_unwritten_calls ? flush_all() : Result<void>{};
}

Result<void> TraceWriter::flush_all() {
  unwritten_ = 0;
  for (ThreadState& thread : threads_)
    if (thread.part)
      if (auto done = thread.part->flush(*packing_); !done) return done;
  return {};
}

Result<void> TraceWriter::write_file(const std::string& name, const std::string& text) const {
  const std::string shown = fmt::format("{}/{}", path_, name);
  const Fd file(::openat(directory_->get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return system_failure("make", shown);
  return write_all(file.get(), text, shown);
}

Result<TraceWriter::Totals> TraceWriter::finish(std::string_view source) {
  Totals totals{.calls = calls_, .files = paths_.size(), .counters = counters_.size()};
  std::vector<bool> has_facts(processes_.size());
  for (ThreadState& thread : threads_) {
    if (!thread.part) continue;
    ++totals.threads;
    if (!has_facts[thread.process]) {
      has_facts[thread.process] = true;
      ++totals.processes;
      if (const Facts& facts = processes_[thread.process].facts; !facts.empty()) thread.part->add_facts(facts);
      thread.part->count_lost(processes_[thread.process].lost_calls);
    }
    if (auto done = thread.part->close(*packing_); !done) return pass_on(done.error());
  }
  nlohmann::ordered_json manifest{{"schema", trace_schema},
                                  {"imported_from", source},
                                  {"started_ns", least_start_ == UINT64_MAX ? 0 : least_start_},
                                  {"command", nlohmann::ordered_json::array()}};
  if (!selected_calls_.empty()) manifest["calls"] = selected_calls_;
  if (!counters_.empty())
    if (auto done = write_file(std::string(counters_name), counters_text(counters_)); !done)
      return pass_on(done.error());
  if (auto done = write_file("manifest.json", manifest.dump(2) + "\n"); !done) return pass_on(done.error());
  if (is_interrupted_ && is_interrupted_()) return interrupted();
  if (::rename(draft_.c_str(), path_.c_str()) != 0) {
    if (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR) return refuse_existing(path_);
    return system_failure("make", path_);
  }
  draft_.clear();
  return totals;
}

}  // namespace iosig::trace
