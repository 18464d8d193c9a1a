/* Opens in every kind of OpenMP region, for C and C++: as places.c. A temporary of the plugin's that is shared between
 * threads, or that the region does not know, would mix the names up or crash. */
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#define NEW (O_CREAT | O_WRONLY)

static void put(int fd, const char* name) {
  if (fd < 3 || write(fd, name, strlen(name)) < 0) fprintf(stderr, "cannot write %s\n", name);
  close(fd);
}

static int in_task(const char* name) {
  int fd = -1;
#pragma omp task shared(fd) firstprivate(name)
  {
#pragma sig temp totalsize(1KB)
    fd = open(name, NEW, 0600);
  }
#pragma omp taskwait
  return fd;
}

static void set(const char** name, int i) {
  static const char* const names[] = {
      "ok-for-3",      "ok-for0-3",  "ok-for1-3",    "ok-for2-3",     "ok-ordered-4",  "ok-ordered0-4", "ok-ordered1-4",
      "ok-ordered2-4", "ok-loop-5",  "ok-loop0-5",   "ok-loop1-5",    "ok-loop2-5",    "ok-simd-6",     "ok-simd0-6",
      "ok-simd1-6",    "ok-simd2-6", "ok-reduce-14", "ok-reduce0-14", "ok-reduce1-14", "ok-reduce2-14"};
  *name = names[i];
}

int main(void) {
  const char* name = NULL;
  int fd = -1, opened = 0, i, j;
  omp_set_dynamic(0);
  omp_set_num_threads(2);

#pragma omp parallel private(name, fd)
  {
    name = omp_get_thread_num() == 0 ? "ok-parallel-2" : "ok-threads-2";
#pragma sig temp totalsize(2KB)
    fd = open(name, NEW, 0600);
    put(fd, name);
  }
#pragma omp parallel for private(name) lastprivate(fd) schedule(dynamic)
  for (i = 0; i < 4; ++i) {
    set(&name, i);
#pragma sig temp totalsize(3KB)
    fd = open(name, NEW, 0600);
    put(fd, name);
  }
#pragma omp parallel for ordered private(name, fd)
  for (i = 4; i < 8; ++i) {
#pragma omp ordered
    {
      set(&name, i);
#pragma sig temp totalsize(4KB)
      fd = open(name, NEW, 0600);
      put(fd, name);
    }
  }
#pragma omp parallel for collapse(2) private(name, fd)
  for (i = 4; i < 6; ++i)
    for (j = 0; j < 2; ++j) {
      set(&name, 2 * i + j);
#pragma sig temp totalsize(5KB)
      fd = open(name, NEW, 0600);
      put(fd, name);
    }
#pragma omp simd private(name, fd)
  for (i = 12; i < 16; ++i) {
    set(&name, i);
#pragma sig temp totalsize(6KB)
    fd = open(name, NEW, 0600);
    put(fd, name);
  }
#pragma omp parallel sections private(fd)
  {
#pragma omp section
      {
#pragma sig temp totalsize(7KB)
          fd = open("ok-section-7", NEW, 0600);
  put(fd, "ok-section-7");
}
#pragma omp section
{
#pragma sig temp totalsize(8KB)
  fd = open("ok-other-8", NEW, 0600);
  put(fd, "ok-other-8");
}
}
#pragma omp parallel private(fd)
{
#pragma omp single
  {
#pragma sig temp totalsize(9KB)
    fd = open("ok-single-9", NEW, 0600);
    put(fd, "ok-single-9");
  }
#pragma omp master
  {
#pragma sig temp totalsize(10KB)
    fd = open("ok-master-10", NEW, 0600);
    put(fd, "ok-master-10");
  }
#pragma omp critical
  {
    name = omp_get_thread_num() == 0 ? "ok-critical-11" : "ok-lock-11";
#pragma sig temp totalsize(11KB)
    fd = open(name, NEW, 0600);
    put(fd, name);
  }
#pragma omp single
  {
    put(in_task("ok-task-1"), "ok-task-1");
#pragma omp taskgroup
#pragma omp taskloop private(fd)
    for (j = 0; j < 2; ++j) {
#pragma sig temp totalsize(12KB)
      fd = open(j ? "ok-taskloop-12" : "ok-tasks-12", NEW, 0600);
      put(fd, j ? "ok-taskloop-12" : "ok-tasks-12");
    }
  }
}
name = "ok-target-13";
#pragma omp target map(from : fd) device(omp_get_initial_device())
{
#pragma sig temp totalsize(13KB)
  fd = open("ok-target-13", NEW, 0600);
}
put(fd, name);
#pragma omp parallel for reduction(+ : opened) firstprivate(name) private(fd)
for (i = 16; i < 20; ++i) {
  set(&name, i);
#pragma sig temp totalsize(14KB)
  if ((fd = open(name, NEW, 0600)) >= 0) ++opened;
  put(fd, name);
}
#pragma omp teams num_teams(1) private(fd)
{
#pragma sig temp totalsize(15KB)
  fd = open("ok-teams-15", NEW, 0600);
  put(fd, "ok-teams-15");
}
return opened == 4 ? 0 : 1;
}
