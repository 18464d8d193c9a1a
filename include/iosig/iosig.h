/* The C interface of libiosig: what the GCC plugin's code calls, and what a program can call by itself.
 *
 * No function here fails its caller: whatever goes wrong, the program's own open goes on as if IOSIG were not there,
 * errno is untouched, and what happened is said once on stderr and by iosig_last_error(). Link with `iosig cc --libs`,
 * or leave the library out: the plugin calls the hints weakly.
 */
#ifndef IOSIG_IOSIG_H
#define IOSIG_IOSIG_H

#ifdef __cplusplus
extern "C" {
#endif

/* The three hints precede an open of `path` by a stream with the text `signature` (docs/formats/signature.md). If that
 * open would create the file, they may put a symbolic link at `path` that leads to the best mount point's own folder.
 *
 * dirfd: AT_FDCWD, or the folder that a relative `path` starts from (openat). flags: open's flags; creat's are
 * O_CREAT | O_WRONLY | O_TRUNC. mode: fopen's. openmode: the bits of libstdc++'s std::ios_base::openmode. */
void iosig_open_hint(int dirfd, const char* path, int flags, const char* signature);
void iosig_fopen_hint(const char* path, const char* mode, const char* signature);
void iosig_fstream_hint(const char* path, int openmode, const char* signature);

/* Redirects `path`, which must not exist, for a program that knows its own streams.
 * Returns 1: a link was made; 0: the file is best placed where it is, or may not be redirected; -1: see
 * iosig_last_error(). */
int iosig_redirect(const char* path, const char* signature);

/* Why this thread's last call here redirected nothing: one line, valid until the thread's next call, "" after success.
 */
const char* iosig_last_error(void);

#ifdef __cplusplus
}
#endif
#endif
