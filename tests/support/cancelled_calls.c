/* Threads with a pending cancellation make many calls, one each; after each the process goes on working with files.
 * Says of each call whether it was cancelled in it (`in`), after it (`after`), or not at all. */
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int operation, fd, to, directory, has_returned;
static const char* name;
static FILE *stream, *uncancelled;

static void cancel_myself(void) {
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  pthread_cancel(pthread_self());
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}
static int visit(const char* path, const struct stat* status, int type, struct FTW* place) {
  cancel_myself();
  pthread_testcancel();
  return 0;
}
static int visit_of_ftw(const char* path, const struct stat* status, int type) {
  return visit(path, status, type, NULL);
}
static int filter(const struct dirent* entry) { return visit(NULL, NULL, 0, NULL) == 0; }

static void* call(void* unused) {
  static char bytes[64], temporary[] = "temporaryXXXXXX";
  struct iovec part = {bytes, 8};
  struct aiocb request = {.aio_fildes = fd, .aio_buf = bytes, .aio_nbytes = 8, .aio_lio_opcode = LIO_READ};
  struct aiocb* requests[] = {&request};
  struct flock whole = {.l_type = F_WRLCK};
  struct stat status;
  struct dirent** entries;
  glob_t found;
  loff_t offset = 0;
  time_t start = 0;
  int number = 0;
#define CALL(what)             \
  if (operation == number++) { \
    name = #what;              \
    cancel_myself();           \
    (void)!(long)(what);       \
    has_returned = 1;          \
    pthread_testcancel();      \
    return NULL;               \
  }
  CALL(open("file.dat", O_RDWR))
  CALL(open("new.dat", O_RDWR | O_CREAT, 0644))
  CALL(open(".", O_RDONLY | O_DIRECTORY))
  CALL(open("none/none", O_RDONLY))
  CALL(openat(AT_FDCWD, "file.dat", O_RDONLY))
  CALL(creat("newer.dat", 0644))
  CALL(read(fd, bytes, 8))
  CALL(write(fd, bytes, 8))
  CALL(pread(fd, bytes, 8, 0))
  CALL(pwrite(fd, bytes, 8, 0))
  CALL(readv(fd, &part, 1))
  CALL(writev(fd, &part, 1))
  CALL(preadv(fd, &part, 1, 0))
  CALL(pwritev(fd, &part, 1, 0))
  CALL(preadv2(fd, &part, 1, 0, 0))
  CALL(pwritev2(fd, &part, 1, 0, 0))
  CALL(fsync(fd))
  CALL(fdatasync(fd))
  CALL(close(dup(fd)))
  CALL(fcntl(fd, F_SETLKW, &whole))
  CALL(fcntl(fd, F_SETLK, &whole))
  CALL(fcntl(fd, F_GETFL))
  CALL(lockf(fd, F_LOCK, 0))
  CALL(flock(fd, LOCK_EX))
  CALL(fallocate(fd, 0, 0, 100))
  CALL(lseek(fd, 3, SEEK_SET))
  CALL(ftruncate(fd, 100))
  CALL(fstat(fd, &status))
  CALL(stat("file.dat", &status))
  CALL(access("file.dat", R_OK))
  CALL(chmod("file.dat", 0644))
  CALL(truncate("file.dat", 90))
  CALL(rename("new.dat", "renamed.dat"))
  CALL(unlink("renamed.dat"))
  CALL(dup2(fd, 50))
  CALL(close_range(60, 70, 0))
  CALL(sendfile(to, fd, NULL, 8))
  CALL(copy_file_range(fd, &offset, to, NULL, 8, 0))
  CALL(splice(fd, &offset, to, NULL, 8, 0))
  CALL(sync_file_range(fd, 0, 1, 0))
  CALL(msync(NULL, 0, 0))
  CALL(mmap(NULL, 10, PROT_READ, MAP_PRIVATE, fd, 0))
  CALL(aio_read(&request))
  CALL(lio_listio(LIO_WAIT, requests, 1, NULL))
  CALL(fopen("file.dat", "r+"))
  CALL(fopen("newest.dat", "w"))
  CALL(fclose(fopen("file.dat", "r")))
  CALL(fopen("file.dat", "rc"))
  CALL(fgetc(uncancelled))
  CALL(fputc('x', uncancelled))
  CALL(localtime(&start))
  CALL(fread(bytes, 1, 8, stream))
  CALL(fflush(stream))
  CALL(fprintf(stream, "%d", 1))
  CALL(fputs("abc", stream))
  CALL(freopen("file.dat", "r+", stream))
  CALL(fdopen(dup(fd), "r"))
  CALL(mkstemp(temporary))
  CALL(tmpfile())
  CALL(popen("true", "r"))
  CALL(system("true"))
  CALL(opendir("."))
  CALL(scandir(".", &entries, NULL, NULL))
  CALL(scandir(".", &entries, filter, NULL))
  CALL(glob("*", 0, NULL, &found))
  CALL(nftw(".", visit, 10, 0))
  CALL(nftw(".", visit, 10, FTW_DEPTH))
  CALL(nftw(".", visit, 10, FTW_DEPTH | FTW_CHDIR))
  CALL(ftw(".", visit_of_ftw, 10))
  name = NULL;
  return NULL;
}

/* Uses files after the thread was cancelled: the library must still work. */
static void work(int number) {
  const long wanted = number + 1;
  long found = 0;
  struct flock whole = {.l_type = F_WRLCK};
  const int file = open("work.dat", O_RDWR | O_CREAT, 0644);
  const long done = pwrite(file, &wanted, sizeof wanted, number * 8L);
  const int is_right = done == 8 && pread(file, &found, sizeof found, number * 8L) == 8 && found == wanted &&
                       fcntl(file, F_SETLKW, &whole) == 0 && lseek(file, 0, SEEK_END) == number * 8L + 8 &&
                       fsync(file) == 0;
  if (file < 0 || !is_right || close(file) != 0) puts("the file is wrong now");
}

/* A lock that another process holds is waited for until the thread is cancelled. */
static void* wait_for_lock(void* unused) {
  struct flock whole = {.l_type = F_WRLCK};
  fcntl(fd, F_SETLKW, &whole);
  return NULL;
}
static void cancel_a_wait(void) {
  int ready[2], go[2];
  char byte;
  if (pipe(ready) != 0 || pipe(go) != 0) exit(1);
  struct flock whole = {.l_type = F_WRLCK};
  const pid_t child = fork();
  if (child == 0) {
    const int file = open("file.dat", O_RDWR);
    if (fcntl(file, F_SETLKW, &whole) != 0 || write(ready[1], "", 1) != 1) _exit(1);
    close(go[1]);
    (void)!read(go[0], &byte, 1);
    _exit(0);
  }
  if (read(ready[0], &byte, 1) != 1) exit(1);
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, wait_for_lock, NULL);
  usleep(200000);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  printf("waiting: %s\n", result == PTHREAD_CANCELED ? "in" : "not at all");
  close(go[1]);
  int status = 1;
  waitpid(child, &status, 0);
  printf("child %d, lock %d\n", status, fcntl(fd, F_SETLKW, &whole));
}

int main(void) {
  directory = open(".", O_RDONLY | O_DIRECTORY);
  for (name = "";; ++operation) {
    unlink("file.dat");
    fd = open("file.dat", O_RDWR | O_CREAT, 0644);
    to = open("copy.dat", O_RDWR | O_CREAT, 0644);
    if (write(fd, "hello world", 11) != 11 || lseek(fd, 0, SEEK_SET) != 0) return 1;
    stream = fopen("file.dat", "r+");
    setbuf(stream, NULL);
    uncancelled = fopen("file.dat", "r+c");
    setbuf(uncancelled, NULL);
    has_returned = 0;
    pthread_t thread;
    void* result = NULL;
    pthread_create(&thread, NULL, call, NULL);
    pthread_join(thread, &result);
    if (name == NULL) break;
    printf("%s: %s\n", name, result != PTHREAD_CANCELED ? "not at all" : has_returned ? "after" : "in");
    fflush(stdout);
    if (fchdir(directory) != 0) return 1; /* a walk that is cancelled leaves the process elsewhere */
    work(operation);
    close(fd);
    close(to);
  }
  cancel_a_wait();
  work(operation++);
  printf("%d calls\n", operation);
  return 0;
}
