#include "iosig/replay/replay_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "iosig/base/text.h"
#include "iosig/container/admin/container.h"

namespace iosig {

std::string_view name_of(ReplayForm form) {
  switch (form) {
    case ReplayForm::container: return "container";
    case ReplayForm::traditional: return "traditional";
    case ReplayForm::plain: return "plain";
  }
  return "";
}

Result<void> make_target(const ReplayTarget& target) {
  if (target.form != ReplayForm::plain) {
    ContainerOptions options;
    options.index = target.form == ReplayForm::traditional ? IndexKind::traditional : IndexKind::pattern;
    options.targets = target.targets;
    return create_container(target.path, options).map([](const auto&) {});
  }
  const Fd made(::open(target.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (made) return {};
  if (errno == EEXIST)
    return fail(ErrorKind::usage, "'{}' exists already; name another target or remove it", printable(target.path));
  return system_failure("make", target.path);
}

Result<void> remove_target(const ReplayTarget& target) {
  if (target.form != ReplayForm::plain) return unlink_container(target.path);
  if (::unlink(target.path.c_str()) != 0) return system_failure("remove", target.path);
  return {};
}

Result<ReplaySink> ReplaySink::open(const ReplayTarget& target) {
  ReplaySink sink;
  sink.path_ = target.path;
  if (target.form == ReplayForm::plain) {
    sink.plain_ = Fd(::open(target.path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!sink.plain_) return system_failure("open", target.path);
    return sink;
  }
  auto directory = ContainerDirectory::open(target.path);
  if (!directory) return pass_on(std::move(directory.error()));
  auto hold = ContainerHold::take(**directory);
  if (!hold) return pass_on(std::move(hold.error()));
  sink.hold_ = *std::move(hold);
  auto writer = ContainerWriter::open(*std::move(directory));
  if (!writer) return pass_on(std::move(writer.error()));
  sink.writer_ = *std::move(writer);
  return sink;
}

Result<void> ReplaySink::write(std::int64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    std::int64_t put = 0;
    if (writer_) {
      const auto done = writer_->write(offset, bytes);
      if (!done) return pass_on(done.error());
      put = *done;
    } else {
      put = ::pwrite(plain_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return write_failure("write", path_, errno);
    }
    offset += put;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> ReplaySink::sync() {
  if (writer_) return writer_->sync();
  if (::fdatasync(plain_.get()) != 0) return system_failure("sync", path_);
  return {};
}

Result<void> ReplaySink::close() {
  if (writer_) return writer_->close();
  plain_ = Fd();
  return {};
}

Result<ReplaySource> ReplaySource::open(const ReplayTarget& target, ContainerView::Source from) {
  ReplaySource source;
  source.path_ = target.path;
  if (target.form == ReplayForm::plain) {
    source.plain_ = Fd(::open(target.path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat status {};
    if (!source.plain_ || ::fstat(source.plain_.get(), &status) != 0) return system_failure("open", target.path);
    source.size_ = status.st_size;
    return source;
  }
  auto directory = ContainerDirectory::open(target.path);
  if (!directory) return pass_on(std::move(directory.error()));
  auto hold = ContainerHold::take(**directory);
  if (!hold) return pass_on(std::move(hold.error()));
  source.hold_ = *std::move(hold);
  auto view = ContainerView::open(*std::move(directory), from);
  if (!view) return pass_on(std::move(view.error()));
  source.view_ = *std::move(view);
  source.size_ = source.view_->size();
  return source;
}

Result<std::int64_t> ReplaySource::read(std::int64_t offset, std::span<std::byte> bytes) {
  if (view_) return view_->read(offset, bytes);
  std::int64_t done = 0;
  while (done < static_cast<std::int64_t>(bytes.size())) {
    const ssize_t got = ::pread(plain_.get(), bytes.data() + done, bytes.size() - static_cast<std::size_t>(done),
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_failure("read", path_);
    if (got == 0) break;
    done += got;
  }
  return done;
}

}  // namespace iosig
