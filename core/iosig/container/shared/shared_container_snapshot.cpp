// What one process knows of a container's content, for others: those that open it at the same time, and other nodes.

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "iosig/base/text.h"
#include "iosig/container/shared/shared_container.h"

namespace iosig {
namespace {

constexpr std::uint64_t snapshot_magic = 0x01574f4e4b584f49;
constexpr std::uint64_t no_table = ~std::uint64_t{0};

/// Before the index.
struct Head {
  std::uint64_t magic_number = snapshot_magic;
  std::array<char, 64> node{};       ///< the name of its sequencer
  std::uint64_t changes = no_table;  ///< by all writers of the node, before the index was read
  std::uint64_t fingerprint = 0;     ///< 0: who looks for others reads anew
};

std::array<char, 64> node_name() {
  std::array<char, 64> name{};
  const std::string table = sequencer_name();
  std::memcpy(name.data(), table.data(), std::min(table.size(), name.size()));
  return name;
}

}  // namespace

Result<std::vector<std::byte>> SharedContainer::export_index_snapshot() {
  for (int tries_left = 4; tries_left > 0; --tries_left) {
    notice_others();
    Head head{.node = node_name()};
    if (is_watching_.load(std::memory_order_acquire)) head.changes = watch_.changes(0);
    const bool is_known = [&] {
      const std::shared_lock lock(view_mutex_);
      return view_ != nullptr;
    }();
    int failure = is_known ? refresh_if_older_than(0) : 0;  // else all is read now
    if (failure == 0) failure = refresh_view(0, INT64_MAX);
    if (failure != 0) return system_failure("read", directory_->path(), failure);
    const std::shared_lock view_lock(view_mutex_);
    const std::lock_guard lock(status_mutex_);
    if (!view_ || has_stale_) continue;
    const auto index = view_->index();
    if (!index) return pass_on(index.error());
    if (is_known) head.fingerprint = fingerprint_;
    const auto head_bytes = std::as_bytes(std::span(&head, 1)), index_bytes = std::as_bytes(std::span(*index));
    std::vector<std::byte> all(head_bytes.begin(), head_bytes.end());
    all.insert(all.end(), index_bytes.begin(), index_bytes.end());
    return all;
  }
  return fail(ErrorKind::infeasible, "'{}' is being written", printable(directory_->path()));
}

bool SharedContainer::import_index_snapshot(std::span<const std::byte> bytes) {
  Head head;
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic_number != snapshot_magic) return false;
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data()) + sizeof head;
  const std::span<const std::uint8_t> index(begin, bytes.size() - sizeof head);
  const auto merged = read_merged_index(index, "the index of '" + printable(directory_->path()) + "'");
  if (!merged) return false;
  auto view = ContainerView::open(directory_, index);
  if (!view) return false;

  if (!is_watching_.load(std::memory_order_acquire)) notice_first_writer();
  const bool is_watching = is_watching_.load(std::memory_order_acquire);
  const bool is_same_node = head.node == node_name();
  if (is_same_node && head.changes != no_table && !is_watching) return false;
  const std::unique_lock view_lock(view_mutex_);
  const std::lock_guard lock(status_mutex_);
  if (view_ || has_status_) return false;
  if (is_same_node)
    noticed_ = head.changes != no_table ? head.changes : 0;
  else
    noticed_ = is_watching ? watch_.changes(owner_) : 0;
  view_ = *std::move(view);
  view_size_ = view_->size();
  status_ = merged->status;
  has_status_ = true;
  looked_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  fingerprint_ = head.fingerprint;
  stale_begin_ = stale_end_ = 0;
  has_stale_.store(false, std::memory_order_release);
  return true;
}

/// 0, errno, or -1: there are none.
int SharedContainer::find_other_nodes() {
  const std::lock_guard lock(nodes_mutex_);
  const auto others = other_nodes_.are_there(directory_->fd(), directory_->path());
  if (!others) return failed(others.error());
  return *others ? 0 : -1;
}

int SharedContainer::refresh_from_other_nodes() {
  if (const int found = find_other_nodes(); found != 0) return std::max(found, 0);
  return refresh_if_older_than(0);
}

int SharedContainer::refresh_from_other_nodes_now() {
  if (const int found = find_other_nodes(); found != 0) return std::max(found, 0);
  if (const int failure = sync(); failure != 0) return failure;
  return refresh_if_older_than(0);
}

}  // namespace iosig
