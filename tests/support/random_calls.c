// Makes random calls on a few files of the working directory, drawn from a seed, and says on stdout what each gave: its
// value, its errno and a sum of the bytes it read. The same seed makes the same calls, so two runs on files that behave
// alike say the same. What file systems may do differently (inodes, blocks, times) is not said.
//
//     random_calls SEED COUNT
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { files = 3, slots = 6, max_bytes = 20000, max_offset = 60000 };

static uint64_t state;
static int fds[slots];
static char bytes[max_bytes];
static int step;

static unsigned drawn(unsigned below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(state >> 33) % below;
}

static const char* name(void) {
  static const char* const names[files] = {"f0", "f1", "f2"};
  return names[drawn(files)];
}

static off_t place(void) { return drawn(40) == 0 ? -1 : (off_t)drawn(drawn(3) == 0 ? max_offset : 2000); }

static size_t length(void) { return drawn(8) == 0 ? drawn(max_bytes) : drawn(200); }

static void fill(size_t count) {
  const char first = (char)('a' + drawn(26));
  for (size_t n = 0; n < count; ++n) bytes[n] = (char)(first + (char)(n % 7));
}

static unsigned sum_of(const char* at, long count) {
  unsigned sum = 1;
  for (long n = 0; n < count; ++n) sum = sum * 31 + (unsigned char)at[n];
  return sum;
}

// errno is that of this call if it failed.
static void say(const char* call, long value) {
  dprintf(1, "%d %s %ld %s\n", step, call, value, value == -1 ? strerrorname_np(errno) : "");
}

static void say_read(const char* call, long value, const char* at) {
  dprintf(1, "%d %s %ld %s %u\n", step, call, value, value == -1 ? strerrorname_np(errno) : "", sum_of(at, value));
}

static void say_status(const char* call, int value, const struct stat* status) {
  if (value == 0)
    dprintf(1, "%d %s %ld %o\n", step, call, (long)status->st_size, status->st_mode);
  else
    say(call, value);
}

static void open_one(int slot) {
  static const int access[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR};
  int flags = access[drawn(4)];
  if (drawn(2)) flags |= O_CREAT;
  if (drawn(6) == 0) flags |= O_TRUNC;
  if (drawn(6) == 0) flags |= O_EXCL | O_CREAT;
  if (drawn(4) == 0) flags |= O_APPEND;
  if (drawn(30) == 0) flags |= O_DIRECTORY;
  if ((flags & O_DIRECTORY) != 0) flags &= ~(O_CREAT | O_EXCL);
  if (fds[slot] >= 0) say("close", close(fds[slot]));
  fds[slot] = open(name(), flags, 0644);
  say("open", fds[slot] < 0 ? -1 : 0);
}

static void use_stream(void) {
  static const char* const modes[] = {"r", "r+", "w", "w+", "a", "a+", "wx"};
  const char* const mode = modes[drawn(7)];
  FILE* const stream = fopen(name(), mode);
  dprintf(1, "%d fopen %s %s\n", step, mode, stream == NULL ? strerrorname_np(errno) : "");
  if (stream == NULL) return;
  if (drawn(3) == 0) (void)setvbuf(stream, NULL, drawn(2) ? _IONBF : _IOLBF, 0);
  for (int n = 0; n < 8; ++n) {
    const size_t count = length();
    switch (drawn(8)) {
      case 0: say("fseek", fseek(stream, (long)place(), drawn(3) ? SEEK_SET : SEEK_END)); break;
      case 1:
        (void)fseek(stream, 0, SEEK_CUR);
        say_read("fread", (long)fread(bytes, 1, count, stream), bytes);
        break;
      case 2: say("ftell", ftell(stream)); break;
      case 3: say("fflush", fflush(stream)); break;
      case 4:
        (void)fseek(stream, 0, SEEK_CUR);
        dprintf(1, "%d getc %d\n", step, getc(stream));
        break;
      case 5: rewind(stream); break;
      default:
        (void)fseek(stream, 0, SEEK_CUR);
        fill(count);
        say("fwrite", (long)fwrite(bytes, 1, count, stream));
    }
    say("ferror", ferror(stream) != 0);
    clearerr(stream);
  }
  say("fclose", fclose(stream));
}

static void map_one(int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0 || status.st_size == 0) return;
  const off_t offset = drawn(2) && status.st_size > 4096 ? 4096 : 0;
  const size_t count = (size_t)(status.st_size - offset);
  char* const at = mmap(NULL, count, PROT_READ, MAP_PRIVATE, fd, offset);
  if (at == MAP_FAILED) return say("mmap", -1);
  say_read("mmap", (long)count, at);
  (void)munmap(at, count);
}

static void one(int depth);

static void child(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    for (int n = 0; n < 5; ++n) one(1);
    _exit(7);
  }
  int status = 0;
  (void)waitpid(pid, &status, 0);
  say("child", status);
  (void)drawn(2);
}

static void one(int depth) {
  ++step;
  const int slot = (int)drawn(slots), fd = fds[slot];
  const size_t count = length();
  const off_t offset = place();
  struct stat status;
  struct iovec parts[3] = {{bytes, count / 2}, {bytes + count / 2, count - count / 2}, {bytes, drawn(5)}};
  fill(count);
  switch (drawn(30)) {
    case 0:
    case 1:
    case 2: return open_one(slot);
    case 3: return say("write", write(fd, bytes, count));
    case 4:
    case 5:
    case 6:
    case 7: return say("pwrite", pwrite(fd, bytes, count, offset));
    case 8: return say_read("read", read(fd, bytes, count), bytes);
    case 9:
    case 10:
    case 11: return say_read("pread", pread(fd, bytes, count, offset), bytes);
    case 12: return say("writev", writev(fd, parts, 3));
    case 13: return say_read("readv", readv(fd, parts, 2), bytes);
    case 14: return say("pwritev", pwritev(fd, parts, (int)drawn(4), offset));
    case 15: return say_read("preadv", preadv(fd, parts, 2, offset), bytes);
    case 16: return say("lseek", lseek(fd, offset - (off_t)drawn(100), (int)drawn(3)));
    case 17: return say("ftruncate", ftruncate(fd, offset));
    case 18: return say_status("fstat", fstat(fd, &status), &status);
    case 19: {
      const int to = (int)drawn(slots);
      if (to == slot || fd < 0) return;
      if (fds[to] >= 0 && drawn(2)) return say("dup2", dup2(fd, fds[to]) < 0 ? -1 : 0);
      if (fds[to] >= 0) say("close", close(fds[to]));
      fds[to] = drawn(2) ? dup(fd) : fcntl(fd, F_DUPFD, 20);
      return say("dup", fds[to] < 0 ? -1 : 0);
    }
    case 20: return depth == 0 ? child() : (void)0;
    case 21: return say("fsync", drawn(2) ? fsync(fd) : fdatasync(fd));
    case 22: {
      const char* const from = name();
      return say("rename", rename(from, name()));
    }
    case 23: return drawn(3) == 0 ? say("unlink", unlink(name())) : say("truncate", truncate(name(), offset));
    case 24: {
      const int mode = drawn(2) ? 0 : FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE;
      return say("fallocate", fallocate(fd, mode, offset, (off_t)drawn(5000)));
    }
    case 25: return fd >= 0 && (fcntl(fd, F_GETFL) & O_ACCMODE) != O_WRONLY ? map_one(fd) : (void)0;
    case 26: return use_stream();
    case 27: {
      const char* const at = name();
      return say_status("stat", drawn(2) ? stat(at, &status) : lstat(at, &status), &status);
    }
    case 28: {
      const int flags = fcntl(fd, F_GETFL);
      say("F_GETFL", flags < 0 ? -1 : flags & (O_ACCMODE | O_APPEND));
      if (flags >= 0 && drawn(4) == 0) say("F_SETFL", fcntl(fd, F_SETFL, flags ^ O_APPEND));
      return;
    }
    default: return say("access", access(name(), (int)drawn(4) == 0 ? F_OK : R_OK | W_OK));
  }
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  state = strtoull(argv[1], NULL, 10) * 2862933555777941757u + 3037000493u;
  for (int n = 0; n < slots; ++n) fds[n] = -1;
  const int count = atoi(argv[2]);
  for (int n = 0; n < count; ++n) one(0);
  for (int n = 0; n < slots; ++n)
    if (fds[n] >= 0) say("close", close(fds[n]));
  for (int n = 0; n < files; ++n) {
    const char at[] = {'f', (char)('0' + n), '\0'};
    const int fd = open(at, O_RDONLY);
    long got = 0;
    while (fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0) say_read(at, got, bytes);
    say(at, fd < 0 ? -1 : got);
    if (fd >= 0) (void)close(fd);
  }
  return 0;
}
