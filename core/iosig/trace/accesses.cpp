#include "iosig/trace/accesses.h"

#include <algorithm>
#include <tuple>

namespace iosig::trace {
Accesses::Accesses(const Trace& trace, const Selection& selection, std::vector<Error>& faults)
    : trace_(trace), selection_(selection), faults_(faults), sound_blocks_(trace.parts_.size(), UINT32_MAX) {
  for (const Part& part : trace.parts_)
    is_part_wanted_.push_back(!selection.processes || selection.processes(trace.process_of(part)));
}

bool Accesses::is_later(const std::unique_ptr<Open>& a, const std::unique_ptr<Open>& b) {
  const auto key = [](const Open& open) {
    const auto& [start_ns, call] = open.calls[open.next];
    return std::tuple(start_ns, open.part, call.id);
  };
  return key(*a) > key(*b);
}

bool Accesses::is_wanted(const Trace::Batch& batch) const {
  if (!is_part_wanted_[batch.part]) return false;
  if (batch.block == Trace::loose_calls) return true;
  if (batch.block >= sound_blocks_[batch.part]) return false;
  const Part& part = trace_.parts_[batch.part];
  const BlockPlace& block = part.blocks[batch.block];
  if ((block.call_set & selection_.naming_set) != 0) return true;
  if ((block.call_set & selection_.call_set) == 0) return false;
  // greatest_end does not cover calls in flight. Imported parts have them in blocks, which have no sums then.
  const bool may_be_in_flight = block.sums_bytes == 0 && part.header.clock == ClockKind::nanoseconds;
  return may_be_in_flight || trace_.clocks_[batch.part].at(block.greatest_end) >= selection_.ended_since_ns;
}

void Accesses::open_batch() {
  const Trace::Batch& batch = trace_.batches_[next_batch_++];
  if (!is_wanted(batch)) return;
  const Part& part = trace_.parts_[batch.part];
  auto begun = std::make_unique<Open>();
  begun->part = batch.part;
  begun->process = &trace_.process_of(part);
  begun->paths = &paths_[begun->process];
  begun->tid = batch.block == Trace::loose_calls ? part.header.tid : part.blocks[batch.block].tid;
  std::vector<PartCall> calls;
  if (batch.block == Trace::loose_calls) {
    calls = part.loose;
  } else {
    auto read = trace_.calls_of(batch.part, batch.block);
    if (!read) {
      faults_.push_back(std::move(read.error()));
      sound_blocks_[batch.part] = std::min(sound_blocks_[batch.part], batch.block);
      return;
    }
    calls = std::move(*read);
  }
  begun->calls.reserve(calls.size());
  for (PartCall& call : calls) begun->calls.emplace_back(trace_.clocks_[batch.part].at(call.slot.start), call);
  const auto is_earlier = [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second.id) < std::pair(b.first, b.second.id);
  };
  if (!std::ranges::is_sorted(begun->calls, is_earlier)) std::ranges::sort(begun->calls, is_earlier);
  open_.push_back(std::move(begun));
  std::ranges::push_heap(open_, is_later);
}

void Accesses::set_access(const Open& from) {
  const auto& [start_ns, call] = from.calls[from.next];
  const Slot& slot = call.slot;
  access_ = {};
  access_.id = std::uint64_t{from.part} << call_id_bits | call.id;
  access_.parent = call.parent == 0 ? 0 : std::uint64_t{from.part} << call_id_bits | call.parent;
  access_.process = from.process;
  access_.tid = from.tid;
  access_.call = slot.call;
  access_.flags = slot.flags;
  access_.file = slot.file;
  access_.fd = slot.fd;
  access_.offset = slot.offset;
  access_.length = slot.length;
  access_.start_ns = start_ns;
  access_.is_in_flight = slot.end == 0;
  access_.end_ns = access_.is_in_flight ? 0 : trace_.clocks_[from.part].at(slot.end);
  access_.result = slot.result;
  std::uint32_t path = slot.path;
  if (slot.file != 0) {
    if (path != 0)
      (*from.paths)[slot.file] = path;
    else if (const auto known = from.paths->find(slot.file); known != from.paths->end())
      path = known->second;
  }
  if (const auto known = access_.process->names.find(path); known != access_.process->names.end())
    access_.path = known->second;
  if (has_second_path(slot.call)) {
    access_.length = no_length;
    const auto second = access_.process->names.find(static_cast<std::uint32_t>(slot.length));
    if (slot.length > 0 && second != access_.process->names.end()) access_.second_path = second->second;
  }
}

bool Accesses::is_selected() {
  if (selection_.layer && layer_of(access_.call) != *selection_.layer) return false;
  if (selection_.files.empty()) return true;
  const auto is_match = [&](std::string_view path) {
    const auto [known, is_new] = matches_.try_emplace(path.data(), false);
    if (is_new) known->second = matches_file(selection_.files, path);
    return known->second;
  };
  return is_match(access_.path) || (!access_.second_path.empty() && is_match(access_.second_path));
}

const Access* Accesses::next() {
  for (;;) {
    while (next_batch_ < trace_.batches_.size() &&
           (open_.empty() || trace_.batches_[next_batch_].start_ns <= open_.front()->calls[open_.front()->next].first))
      open_batch();
    if (open_.empty()) return nullptr;
    std::ranges::pop_heap(open_, is_later);
    set_access(*open_.back());
    if (++open_.back()->next == open_.back()->calls.size())
      open_.pop_back();
    else
      std::ranges::push_heap(open_, is_later);
    if (is_selected()) return &access_;
  }
}

}  // namespace iosig::trace
