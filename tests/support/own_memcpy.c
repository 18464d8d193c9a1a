/* A program with a memcpy() of its own, which is chosen when the program starts (an IFUNC), as in AMD's libmem. */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static void* copy(void* to, const void* from, size_t bytes) {
  for (size_t n = 0; n < bytes; ++n) ((volatile char*)to)[n] = ((const char*)from)[n];
  return to;
}
typedef void* Copy(void*, const void*, size_t);
static Copy* choose(void) { return copy; }
void* memcpy(void*, const void*, size_t) __attribute__((ifunc("choose")));

int main(void) {
  const int fd = open("four.dat", O_RDWR | O_CREAT, 0644);
  char bytes[8] = "";
  printf("%d\n", write(fd, "written", 7) == 7 && pread(fd, bytes, 7, 0) == 7);
  puts(bytes);
  return close(fd);
}
