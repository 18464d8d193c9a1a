/* The limits of a file: fpathconf(3). */
#include "say.h"

int main(void) {
  const int fd = open("file", O_RDWR | O_CREAT, 0644);
  say("fpathconf", "file", none, none, fpathconf(fd, _PC_NAME_MAX));
  say("fpathconf", "file", none, none, fpathconf(fd, _PC_LINK_MAX));
  say("fpathconf", "file", none, none, fpathconf(fd, _PC_ASYNC_IO));
  say("fpathconf", "file", none, none, fpathconf(fd, 9999));
  errno = 0;
  say("fpathconf", "file", none, none, fpathconf(fd, _PC_SYMLINK_MAX)); /* no limit: -1 without an error */
  return close(fd);
}
