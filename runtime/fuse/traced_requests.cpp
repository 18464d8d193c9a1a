#include "traced_requests.h"

#include <cstring>

#include "mount.h"

namespace iosig::fuse {

using trace::Call;

namespace {

/// O_LARGEFILE, which the kernel adds; to programs it is 0.
constexpr int large_file = 0100000;

thread_local TracedRequest current;

/// Ends the record of the request that is about to be answered.
void end_request(std::int64_t result) {
  if (current.tracer == nullptr) [[likely]]
    return;
  TracedRequest ended = TracedRequest::take();
  if (ended.opens != nullptr && result >= 0) {
    Handle& handle = handle_of(ended.opens);
    handle.traced_file = ended.subject.file;
    handle.traced_path = std::move(ended.subject.path);
    result = 0;
  }
  ended.tracer->end(ended.request, result);
}

/// The path of an inode below the mount point.
std::string path_of(fuse_req_t request, fuse_ino_t number) {
  Mount& mount = mount_of(request);
  return mount.options.mount_point + mount.inodes.path_below(mount.inode(number));
}

std::string path_of(fuse_req_t request, fuse_ino_t parent, const char* name) {
  return fmt::format("{}/{}", path_of(request, parent), name);
}

Subject of_handle(Call call, const fuse_file_info* info) {
  const Handle& handle = handle_of(info);
  return {.call = call, .path = handle.traced_path, .file = handle.traced_file};
}

Subject of_handle(Call call, const fuse_file_info* info, off_t offset, std::size_t length) {
  Subject subject = of_handle(call, info);
  subject.offset = offset;
  subject.length = static_cast<std::int64_t>(length);
  return subject;
}

Subject of_inode(Call call, fuse_req_t request, fuse_ino_t number) {
  return {.call = call, .path = path_of(request, number)};
}

Subject of_name(Call call, fuse_req_t request, fuse_ino_t parent, const char* name) {
  return {.call = call, .path = path_of(request, parent, name)};
}

/// One call may change several attributes; it is named for the one that matters most.
Subject of_attributes(fuse_req_t request, fuse_ino_t number, const struct stat& wanted, int what,
                      const fuse_file_info* info) {
  const bool is_open = info != nullptr;
  const auto subject = [&](Call open, Call named) {
    return is_open ? of_handle(open, info) : of_inode(named, request, number);
  };
  if ((what & FUSE_SET_ATTR_SIZE) != 0) {
    Subject truncated = subject(Call::ftruncate, Call::truncate);
    truncated.length = wanted.st_size;
    return truncated;
  }
  if ((what & FUSE_SET_ATTR_MODE) != 0) return subject(Call::fchmod, Call::chmod);
  if ((what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) != 0) return subject(Call::fchown, Call::chown);
  return subject(Call::utime, Call::utime);
}

/// Begins the record of a request. `opens`: of a request that opens a file.
void begin_request(fuse_req_t request, Subject subject, fuse_file_info* opens = nullptr) {
  Tracer& tracer = *mount_of(request).tracer;
  if (opens != nullptr) subject.file = tracer.next_file();
  current.request = tracer.begin(fuse_req_ctx(request)->pid, subject);
  current.tracer = &tracer;
  current.opens = opens;
  if (opens != nullptr) current.subject = std::move(subject);
}

/// The handler that was there before.
template <auto member>
using Handler = std::remove_reference_t<decltype(fuse_lowlevel_ops{}.*member)>;
template <auto member>
Handler<member> untraced = nullptr;

/// Puts a handler before another that calls `begin` with the request's arguments.
template <auto member, class Begin, class... Arguments>
void trace_with(fuse_lowlevel_ops& all, Begin /*begin*/, void (*)(fuse_req_t, Arguments...)) {
  if (all.*member == nullptr) return;
  untraced<member> = all.*member;
  all.*member = [](fuse_req_t request, Arguments... arguments) {
    Begin()(request, arguments...);
    untraced<member>(request, arguments...);
  };
}
template <auto member, class Begin>
void trace(fuse_lowlevel_ops& all, Begin begin) {
  trace_with<member>(all, begin, Handler<member>{});
}

using Ops = fuse_lowlevel_ops;

void trace_data(Ops& all) {
  trace<&Ops::open>(all, [](fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
    Subject subject = of_inode(Call::open, request, number);
    subject.length = info->flags & ~large_file;
    begin_request(request, std::move(subject), info);
  });
  trace<&Ops::create>(
      all, [](fuse_req_t request, fuse_ino_t parent, const char* name, mode_t /*mode*/, fuse_file_info* info) {
        Subject subject = of_name(Call::open, request, parent, name);
        subject.length = info->flags & ~large_file;
        begin_request(request, std::move(subject), info);
      });
  trace<&Ops::read>(all,
                    [](fuse_req_t request, fuse_ino_t, std::size_t bytes, off_t offset, const fuse_file_info* info) {
                      begin_request(request, of_handle(Call::read, info, offset, bytes));
                    });
  trace<&Ops::write_buf>(
      all, [](fuse_req_t request, fuse_ino_t, const fuse_bufvec* data, off_t offset, const fuse_file_info* info) {
        begin_request(request, of_handle(Call::write, info, offset, fuse_buf_size(data)));
      });
  trace<&Ops::copy_file_range>(
      all, [](fuse_req_t request, fuse_ino_t, off_t /*from*/, const fuse_file_info* /*source*/, fuse_ino_t, off_t to,
              const fuse_file_info* target, std::size_t bytes,
              int /*flags*/) { begin_request(request, of_handle(Call::copy_file_range, target, to, bytes)); });
  trace<&Ops::flush>(all, [](fuse_req_t request, fuse_ino_t, const fuse_file_info* info) {
    begin_request(request, of_handle(Call::close, info));
  });
  trace<&Ops::fsync>(all, [](fuse_req_t request, fuse_ino_t, int data_only, const fuse_file_info* info) {
    begin_request(request, of_handle(data_only != 0 ? Call::fdatasync : Call::fsync, info));
  });
  trace<&Ops::fallocate>(
      all, [](fuse_req_t request, fuse_ino_t, int /*mode*/, off_t offset, off_t length, const fuse_file_info* info) {
        begin_request(request, of_handle(Call::fallocate, info, offset, static_cast<std::size_t>(length)));
      });
  trace<&Ops::lseek>(all, [](fuse_req_t request, fuse_ino_t, off_t offset, int whence, const fuse_file_info* info) {
    begin_request(request, of_handle(Call::lseek, info, offset, static_cast<std::size_t>(whence)));
  });
}

void trace_directories(Ops& all) {
  trace<&Ops::opendir>(all, [](fuse_req_t request, fuse_ino_t number, fuse_file_info* info) {
    begin_request(request, of_inode(Call::opendir, request, number), info);
  });
  const auto reads = [](fuse_req_t request, fuse_ino_t, std::size_t /*bytes*/, off_t, const fuse_file_info* info) {
    begin_request(request, of_handle(Call::readdir, info));
  };
  trace<&Ops::readdir>(all, reads);
  trace<&Ops::readdirplus>(all, reads);
  trace<&Ops::fsyncdir>(all, [](fuse_req_t request, fuse_ino_t, int data_only, const fuse_file_info* info) {
    begin_request(request, of_handle(data_only != 0 ? Call::fdatasync : Call::fsync, info));
  });
  trace<&Ops::statfs>(all, [](fuse_req_t request, fuse_ino_t number) {
    begin_request(request, of_inode(Call::statfs, request, number));
  });
}

void trace_attributes(Ops& all) {
  trace<&Ops::getattr>(all, [](fuse_req_t request, fuse_ino_t number, const fuse_file_info* info) {
    begin_request(request, info == nullptr ? of_inode(Call::stat, request, number) : of_handle(Call::fstat, info));
  });
  trace<&Ops::setattr>(
      all, [](fuse_req_t request, fuse_ino_t number, const struct stat* wanted, int what, const fuse_file_info* info) {
        begin_request(request, of_attributes(request, number, *wanted, what, info));
      });
  trace<&Ops::getxattr>(all, [](fuse_req_t request, fuse_ino_t number, const char*, std::size_t) {
    begin_request(request, of_inode(Call::getxattr, request, number));
  });
  trace<&Ops::listxattr>(all, [](fuse_req_t request, fuse_ino_t number, std::size_t) {
    begin_request(request, of_inode(Call::listxattr, request, number));
  });
  trace<&Ops::setxattr>(all, [](fuse_req_t request, fuse_ino_t number, const char*, const char*, std::size_t, int) {
    begin_request(request, of_inode(Call::setxattr, request, number));
  });
  trace<&Ops::removexattr>(all, [](fuse_req_t request, fuse_ino_t number, const char*) {
    begin_request(request, of_inode(Call::removexattr, request, number));
  });
}

void trace_names(Ops& all) {
  trace<&Ops::lookup>(all, [](fuse_req_t request, fuse_ino_t parent, const char* name) {
    begin_request(request, of_name(Call::lookup, request, parent, name));
  });
  trace<&Ops::readlink>(all, [](fuse_req_t request, fuse_ino_t number) {
    begin_request(request, of_inode(Call::readlink, request, number));
  });
  trace<&Ops::mknod>(all, [](fuse_req_t request, fuse_ino_t parent, const char* name, mode_t, dev_t) {
    begin_request(request, of_name(Call::mknod, request, parent, name));
  });
  trace<&Ops::mkdir>(all, [](fuse_req_t request, fuse_ino_t parent, const char* name, mode_t) {
    begin_request(request, of_name(Call::mkdir, request, parent, name));
  });
  trace<&Ops::symlink>(all, [](fuse_req_t request, const char* to, fuse_ino_t parent, const char* name) {
    Subject subject = of_name(Call::symlink, request, parent, name);
    subject.second_path = to;
    begin_request(request, std::move(subject));
  });
  trace<&Ops::link>(all, [](fuse_req_t request, fuse_ino_t number, fuse_ino_t parent, const char* name) {
    Subject subject = of_inode(Call::link, request, number);
    subject.second_path = path_of(request, parent, name);
    begin_request(request, std::move(subject));
  });
  trace<&Ops::unlink>(all, [](fuse_req_t request, fuse_ino_t parent, const char* name) {
    begin_request(request, of_name(Call::unlink, request, parent, name));
  });
  trace<&Ops::rmdir>(all, [](fuse_req_t request, fuse_ino_t parent, const char* name) {
    begin_request(request, of_name(Call::rmdir, request, parent, name));
  });
  trace<&Ops::rename>(all, [](fuse_req_t request, fuse_ino_t parent, const char* name, fuse_ino_t new_parent,
                              const char* new_name, unsigned) {
    Subject subject = of_name(Call::rename, request, parent, name);
    subject.second_path = path_of(request, new_parent, new_name);
    begin_request(request, std::move(subject));
  });
}

}  // namespace

TracedRequest TracedRequest::take() { return std::exchange(current, TracedRequest{}); }
void TracedRequest::put(TracedRequest request) { current = std::move(request); }
void TracedRequest::set_offset(std::int64_t offset) {
  if (current.tracer != nullptr) current.tracer->set_offset(current.request, offset);
}

void add_tracing(fuse_lowlevel_ops& all) {
  trace_data(all);
  trace_directories(all);
  trace_attributes(all);
  trace_names(all);
}

}  // namespace iosig::fuse

// The linker calls these instead of libfuse's functions, and libfuse's by the names that begin with __real_.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define IOSIG_REPLY(name, result, parameters, ...)               \
  extern "C" int __real_fuse_reply_##name parameters;            \
  extern "C" int __wrap_fuse_reply_##name parameters;            \
  int __wrap_fuse_reply_##name parameters {                      \
    iosig::fuse::end_request(static_cast<std::int64_t>(result)); \
    return __real_fuse_reply_##name(__VA_ARGS__);                \
  }
IOSIG_REPLY(err, -error, (fuse_req_t request, int error), request, error)
IOSIG_REPLY(entry, 0, (fuse_req_t request, const fuse_entry_param* entry), request, entry)
IOSIG_REPLY(create, 0, (fuse_req_t request, const fuse_entry_param* entry, const fuse_file_info* info), request, entry,
            info)
IOSIG_REPLY(attr, 0, (fuse_req_t request, const struct stat* status, double seconds), request, status, seconds)
IOSIG_REPLY(readlink, std::strlen(target), (fuse_req_t request, const char* target), request, target)
IOSIG_REPLY(open, 0, (fuse_req_t request, const fuse_file_info* info), request, info)
IOSIG_REPLY(write, count, (fuse_req_t request, std::size_t count), request, count)
IOSIG_REPLY(buf, size, (fuse_req_t request, const char* bytes, std::size_t size), request, bytes, size)
IOSIG_REPLY(data, fuse_buf_size(data), (fuse_req_t request, fuse_bufvec* data, fuse_buf_copy_flags flags), request,
            data, flags)
IOSIG_REPLY(statfs, 0, (fuse_req_t request, const struct statvfs* status), request, status)
IOSIG_REPLY(xattr, count, (fuse_req_t request, std::size_t count), request, count)
IOSIG_REPLY(lseek, offset, (fuse_req_t request, off_t offset), request, offset)
#undef IOSIG_REPLY
// NOLINTEND(bugprone-reserved-identifier)
