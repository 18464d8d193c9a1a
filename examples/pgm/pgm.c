/* pgm: three transformations of a grey picture, written chunk by chunk, as the IOSIG paper's section 7.2 has them.
 *
 *   posterize   every chunk in turn                              sequential
 *   divide      even chunks to the upper half, odd to the lower  strided
 *   shuffle     every chunk to a pseudo-random place             random
 *
 * The pragmas say what the output needs; a compiler without IOSIG ignores them and the program is the same. Build with
 *
 *   iosig cc -- gcc -O2 -DSIGNATURE=ps3 -DCHUNK=512KB -DTOTAL=1GB pgm.c -o pgm
 *
 * to declare one of the paper's parameter sets for all three (Fig. 10); without -DSIGNATURE each has its own.
 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef CHUNK
#define CHUNK 512KB
#endif
#ifndef TOTAL
#define TOTAL 1GB
#endif

/* clang-format would take the hyphens for minus signs. */
// clang-format off
#pragma sigdef ps1 global random size-per-IO(CHUNK) totalsize(TOTAL)
#pragma sigdef ps2 MTTDL(20y) random size-per-IO(CHUNK) totalsize(TOTAL)
#pragma sigdef ps3 persist random size-per-IO(CHUNK) totalsize(TOTAL)
#pragma sigdef ps4 random size-per-IO(CHUNK) totalsize(TOTAL)

#ifdef SIGNATURE
#define IN_ORDER SIGNATURE sequential
#define IN_JUMPS SIGNATURE
#else
#define IN_ORDER persist sequential size-per-IO(CHUNK) totalsize(TOTAL) /* Fig. 9 */
#define IN_JUMPS ps3
#endif
// clang-format on

#define TEXT_OF(macro) TEXT(macro)
#define TEXT(token) #token

enum { header_limit = 64 * 1024, aligned_header = 4096, levels = 4 };

struct image {
  int fd;
  const char* path;
  uint64_t header_bytes, width, height;
  unsigned white; /* the header's maximum value */
};

/* How a picture is written: the same numbers for all three transformations. */
struct plan {
  uint64_t chunk_bytes, pixels, chunks;
  bool sync;
};

static _Noreturn void die(const char* path, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "pgm: %s: ", path);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static _Noreturn void usage(void) {
  fputs(
      "usage: pgm posterize|divide|shuffle INPUT OUTPUT [--chunk BYTES] [--no-sync] [--seed N] [--json]\n"
      "       pgm generate WIDTH HEIGHT OUTPUT\n"
      "  --chunk BYTES  written and synced at once, e.g. 512KB (default: " TEXT_OF(CHUNK) ")\n"
      "  --no-sync      leave it to the system when data reaches the device\n"
      "  --seed N       another shuffle\n"
      "  --json         bytes and seconds as one JSON object\n"
      "e.g.   pgm generate 8192 8192 in.pgm && pgm shuffle in.pgm out.pgm --chunk 64KB\n",
      stderr);
  exit(2);
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A number with an optional unit KB, MB or GB (powers of 1024); 0 when `text` is none. */
static uint64_t parse_number(const char* text) {
  static const struct {
    const char* name;
    uint64_t factor;
  } units[] = {{"", 1}, {"KB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}};
  if (!isdigit((unsigned char)*text)) return 0;
  char* end;
  errno = 0;
  const uint64_t number = strtoull(text, &end, 10);
  for (size_t i = 0; i < sizeof units / sizeof *units; ++i)
    if (strcmp(end, units[i].name) == 0)
      return errno == 0 && number <= INT64_MAX / units[i].factor ? number * units[i].factor : 0;
  return 0;
}

static void read_fully(const struct image* in, void* buffer, uint64_t bytes, uint64_t offset) {
  for (char* to = buffer; bytes > 0;) {
    const ssize_t got = pread(in->fd, to, bytes, (off_t)offset);
    if (got == 0) die(in->path, "ends after %llu bytes; its header promises more pixels", (unsigned long long)offset);
    if (got < 0 && errno != EINTR) die(in->path, "%s", strerror(errno));
    if (got > 0) to += got, bytes -= (uint64_t)got, offset += (uint64_t)got;
  }
}

static void write_fully(int fd, const char* path, const void* buffer, uint64_t bytes, uint64_t offset) {
  for (const char* from = buffer; bytes > 0;) {
    const ssize_t put = pwrite(fd, from, bytes, (off_t)offset);
    if (put < 0 && errno != EINTR) die(path, "%s", strerror(errno));
    if (put > 0) from += put, bytes -= (uint64_t)put, offset += (uint64_t)put;
  }
}

/* The next number of a PGM header, after blanks and comments; `*at` moves behind it. */
static uint64_t header_number(const char* path, const char* header, size_t length, size_t* at, const char* what) {
  while (*at < length && (isspace((unsigned char)header[*at]) || header[*at] == '#')) {
    if (header[*at] == '#')
      while (*at < length && header[*at] != '\n') ++*at;
    else
      ++*at;
  }
  const size_t begin = *at;
  uint64_t number = 0;
  while (*at < length && isdigit((unsigned char)header[*at]) && number < UINT32_MAX)
    number = number * 10 + (uint64_t)(header[(*at)++] - '0');
  if (*at == begin || *at >= length || number == 0 || number > INT32_MAX || !isspace((unsigned char)header[*at]))
    die(path, "the header's %s is no number from 1 to %d (byte %zu)", what, INT32_MAX, begin);
  return number;
}

static struct image open_image(const char* path) {
  struct image in = {.fd = open(path, O_RDONLY), .path = path};
  struct stat about;
  if (in.fd < 0 || fstat(in.fd, &about) < 0) die(path, "%s", strerror(errno));
  static char header[header_limit];
  const ssize_t length = pread(in.fd, header, sizeof header, 0);
  if (length < 0) die(path, "%s", strerror(errno));
  if (length < 3 || memcmp(header, "P5", 2) != 0 || !isspace((unsigned char)header[2]))
    die(path, "is no binary PGM picture (it does not begin with P5)");
  size_t at = 2;
  in.width = header_number(path, header, (size_t)length, &at, "width");
  in.height = header_number(path, header, (size_t)length, &at, "height");
  const uint64_t white = header_number(path, header, (size_t)length, &at, "maximum value");
  if (white > 255)
    die(path, "has a maximum value of %llu; only one byte per pixel is known", (unsigned long long)white);
  in.white = (unsigned)white;
  in.header_bytes = at + 1; /* exactly one blank ends the header */
  const uint64_t wanted = in.header_bytes + in.width * in.height;
  if ((uint64_t)about.st_size < wanted)
    die(path, "has %llu bytes; %llu x %llu pixels need %llu", (unsigned long long)about.st_size,
        (unsigned long long)in.width, (unsigned long long)in.height, (unsigned long long)wanted);
  return in;
}

static uint64_t length_of(const struct plan* plan, uint64_t chunk) {
  const uint64_t begin = chunk * plan->chunk_bytes;
  return plan->pixels - begin < plan->chunk_bytes ? plan->pixels - begin : plan->chunk_bytes;
}

/* Where each transformation puts chunk number `chunk`: an offset among the pixels. */
typedef uint64_t placement(const struct plan* plan, uint64_t chunk, const uint64_t* order);

static uint64_t in_turn(const struct plan* plan, uint64_t chunk, const uint64_t* order) {
  (void)order;
  return chunk * plan->chunk_bytes;
}

static uint64_t in_halves(const struct plan* plan, uint64_t chunk, const uint64_t* order) {
  (void)order;
  const uint64_t even_chunks = (plan->chunks + 1) / 2;
  const uint64_t last_even = 2 * (even_chunks - 1);
  const uint64_t upper_bytes = (even_chunks - 1) * plan->chunk_bytes + length_of(plan, last_even);
  return (chunk % 2 ? upper_bytes : 0) + chunk / 2 * plan->chunk_bytes;
}

static uint64_t in_disorder(const struct plan* plan, uint64_t chunk, const uint64_t* order) {
  return order[chunk] * plan->chunk_bytes;
}

static uint64_t splitmix64(uint64_t* state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* A permutation of the chunks (Fisher and Yates). A last chunk that is shorter keeps its place. */
static uint64_t* shuffled_order(const struct plan* plan, uint64_t seed) {
  uint64_t* order = malloc(plan->chunks * sizeof *order);
  if (order == NULL) die("memory", "no room for the order of %llu chunks", (unsigned long long)plan->chunks);
  for (uint64_t i = 0; i < plan->chunks; ++i) order[i] = i;
  for (uint64_t left = plan->pixels / plan->chunk_bytes; left > 1; --left) {
    const uint64_t other = splitmix64(&seed) % left;
    const uint64_t swapped = order[left - 1];
    order[left - 1] = order[other];
    order[other] = swapped;
  }
  return order;
}

/* Few grey levels, evenly spaced from black to the picture's white. */
static void make_poster_tones(unsigned char tones[256], unsigned white) {
  for (unsigned grey = 0; grey < 256; ++grey) {
    const unsigned level = (grey < white ? grey : white) * levels / (white + 1);
    tones[grey] = (unsigned char)(level * white / (levels - 1));
  }
}

/* Copies the header, then every chunk to its place, synced one by one. Returns the seconds spent writing. */
static double write_chunks(const struct image* in, int out, const char* path, const struct plan* plan, placement* place,
                           const uint64_t* order, const unsigned char* tones) {
  const uint64_t buffer_bytes = plan->chunk_bytes > in->header_bytes ? plan->chunk_bytes : in->header_bytes;
  unsigned char* buffer = malloc(buffer_bytes);
  if (buffer == NULL) die("memory", "no room for a chunk of %llu bytes", (unsigned long long)plan->chunk_bytes);
  read_fully(in, buffer, in->header_bytes, 0);
  write_fully(out, path, buffer, in->header_bytes, 0);
  double writing_s = 0;
  for (uint64_t chunk = 0; chunk < plan->chunks; ++chunk) {
    const uint64_t bytes = length_of(plan, chunk);
    read_fully(in, buffer, bytes, in->header_bytes + chunk * plan->chunk_bytes);
    if (tones != NULL)
      for (uint64_t i = 0; i < bytes; ++i) buffer[i] = tones[buffer[i]];
    const double begin_s = now_s();
    write_fully(out, path, buffer, bytes, in->header_bytes + place(plan, chunk, order));
    if (plan->sync && fdatasync(out) < 0) die(path, "%s", strerror(errno));
    writing_s += now_s() - begin_s;
  }
  free(buffer);
  return writing_s;
}

static int transform(const char* what, const char* input, const char* output, struct plan plan, uint64_t seed,
                     bool json) {
  const struct image in = open_image(input);
  struct stat source, target;
  if (fstat(in.fd, &source) == 0 && stat(output, &target) == 0 && source.st_dev == target.st_dev &&
      source.st_ino == target.st_ino)
    die(output, "is the input itself; name another output");
  plan.pixels = in.width * in.height;
  if (plan.chunk_bytes > plan.pixels) plan.chunk_bytes = plan.pixels;
  plan.chunks = (plan.pixels + plan.chunk_bytes - 1) / plan.chunk_bytes;

  const bool posterize = strcmp(what, "posterize") == 0;
  const bool divide = strcmp(what, "divide") == 0;
  int out;
  if (posterize) {
#pragma sig IN_ORDER
    out = open(output, O_CREAT | O_WRONLY | O_TRUNC, 0666);
  } else {
#pragma sig IN_JUMPS
    out = open(output, O_CREAT | O_WRONLY | O_TRUNC, 0666);
  }
  if (out < 0) die(output, "%s", strerror(errno));

  unsigned char tones[256];
  make_poster_tones(tones, in.white);
  uint64_t* order = posterize || divide ? NULL : shuffled_order(&plan, seed);
  const double begin_s = now_s();
  const double writing_s = write_chunks(&in, out, output, &plan,
                                        posterize ? in_turn
                                        : divide  ? in_halves
                                                  : in_disorder,
                                        order, posterize ? tones : NULL);
  if (close(out) < 0) die(output, "%s", strerror(errno));
  const double total_s = now_s() - begin_s;
  free(order);
  close(in.fd);

  const char* format = json ? "{\"bytes\": %llu, \"chunks\": %llu, \"writing_s\": %.6f, \"total_s\": %.6f}\n"
                            : "%llu bytes in %llu chunks: %.3f s writing, %.3f s in all\n";
  printf(format, (unsigned long long)plan.pixels, (unsigned long long)plan.chunks, writing_s, total_s);
  return 0;
}

/* Rings on a slope, row by row. The header ends on a block boundary, so that aligned chunks stay aligned in the file.
 */
static int generate(uint64_t width, uint64_t height, const char* output) {
  FILE* out = fopen(output, "wb");
  unsigned char* row = malloc(width);
  if (out == NULL || row == NULL) die(output, "%s", strerror(errno));
  char tail[64];
  const int tail_bytes =
      snprintf(tail, sizeof tail, "\n%llu %llu\n255\n", (unsigned long long)width, (unsigned long long)height);
  fprintf(out, "P5\n#%*s%s", aligned_header - 4 - tail_bytes, "", tail);
  for (uint64_t y = 0; y < height; ++y) {
    const int64_t dy = (int64_t)y - (int64_t)height / 2;
    for (uint64_t x = 0; x < width; ++x) {
      const int64_t dx = (int64_t)x - (int64_t)width / 2;
      row[x] = (unsigned char)((uint64_t)(dx * dx + dy * dy) * 64 / (width + height) + x * 128 / width);
    }
    fwrite(row, 1, width, out);
  }
  free(row);
  if (ferror(out) || fclose(out) != 0) die(output, "%s", strerror(errno));
  return 0;
}

int main(int argc, char** argv) {
  const char* operands[4];
  int count = 0;
  struct plan plan = {.chunk_bytes = parse_number(TEXT_OF(CHUNK)), .sync = true};
  uint64_t seed = 1;
  bool json = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--chunk") == 0 && i + 1 < argc) {
      plan.chunk_bytes = parse_number(argv[++i]);
    } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      seed = parse_number(argv[++i]);
    } else if (strcmp(argv[i], "--no-sync") == 0) {
      plan.sync = false;
    } else if (strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (argv[i][0] == '-' || count == 4) {
      usage();
    } else {
      operands[count++] = argv[i];
    }
  }
  if (count < 3 || plan.chunk_bytes == 0) usage();
  const char* what = operands[0];
  if (strcmp(what, "generate") == 0 && count == 4) {
    const uint64_t width = parse_number(operands[1]), height = parse_number(operands[2]);
    if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX) usage();
    return generate(width, height, operands[3]);
  }
  if (count == 3 && (strcmp(what, "posterize") == 0 || strcmp(what, "divide") == 0 || strcmp(what, "shuffle") == 0))
    return transform(what, operands[1], operands[2], plan, seed, json);
  usage();
}
