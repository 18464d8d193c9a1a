#include "iosig/trace/import/recorder_calls.h"

#include <fcntl.h>

#include <algorithm>
#include <map>
#include <utility>

namespace iosig::trace {
namespace {

constexpr RecorderFunction functions[] = {
    {.name = "creat", .call = Call::open},
    {.name = "creat64", .call = Call::open},
    {.name = "open", .call = Call::open, .size = 1},
    {.name = "open64", .call = Call::open, .size = 1},
    {.name = "close", .call = Call::close},
    {.name = "read", .call = Call::read, .size = 2},
    {.name = "write", .call = Call::write, .size = 2},
    {.name = "pread", .call = Call::pread, .size = 2, .offset = 3},
    {.name = "pread64", .call = Call::pread, .size = 2, .offset = 3},
    {.name = "pwrite", .call = Call::pwrite, .size = 2, .offset = 3},
    {.name = "pwrite64", .call = Call::pwrite, .size = 2, .offset = 3},
    {.name = "readv", .call = Call::readv, .size = 1},
    {.name = "writev", .call = Call::writev, .size = 1},
    {.name = "lseek", .call = Call::lseek, .size = 2, .offset = 1},
    {.name = "lseek64", .call = Call::lseek, .size = 2, .offset = 1},
    {.name = "fsync", .call = Call::fsync},
    {.name = "fdatasync", .call = Call::fdatasync},
    {.name = "ftruncate", .call = Call::ftruncate, .size = 1},
    {.name = "truncate", .call = Call::truncate, .size = 1},
    {.name = "mmap", .call = Call::mmap, .path = 4, .size = 1, .offset = 5},
    {.name = "mmap64", .call = Call::mmap, .path = 4, .size = 1, .offset = 5},
    {.name = "fopen", .call = Call::fopen, .size = 1},
    {.name = "fopen64", .call = Call::fopen, .size = 1},
    {.name = "fdopen", .call = Call::fdopen},
    {.name = "fclose", .call = Call::fclose},
    {.name = "fread", .call = Call::fread, .path = 3, .size = 1, .factor = 2},
    {.name = "fwrite", .call = Call::fwrite, .path = 3, .size = 1, .factor = 2},
    {.name = "fseek", .call = Call::fseek},
    {.name = "fseeko", .call = Call::fseek},
    {.name = "fflush", .call = Call::fflush},
    {.name = "__xstat", .call = Call::stat, .path = 1},
    {.name = "__xstat64", .call = Call::stat, .path = 1},
    {.name = "__lxstat", .call = Call::stat, .path = 1},
    {.name = "__lxstat64", .call = Call::stat, .path = 1},
    {.name = "__fxstat", .call = Call::fstat, .path = 1},
    {.name = "__fxstat64", .call = Call::fstat, .path = 1},
    {.name = "access", .call = Call::access},
    {.name = "faccessat", .call = Call::access, .path = 1},
    {.name = "mkdir", .call = Call::mkdir},
    {.name = "rmdir", .call = Call::rmdir},
    {.name = "link", .call = Call::link, .second = 1},
    {.name = "linkat", .call = Call::link, .path = 1, .second = 3},
    {.name = "symlink", .call = Call::symlink, .path = 1, .second = 0},
    {.name = "symlinkat", .call = Call::symlink, .path = 2, .second = 0},
    {.name = "unlink", .call = Call::unlink},
    {.name = "remove", .call = Call::unlink},
    {.name = "rename", .call = Call::rename, .second = 1},
    {.name = "readlink", .call = Call::readlink},
    {.name = "chmod", .call = Call::chmod},
    {.name = "chown", .call = Call::chown},
    {.name = "lchown", .call = Call::chown},
    {.name = "utime", .call = Call::utime},
    {.name = "mknod", .call = Call::mknod},
    {.name = "opendir", .call = Call::opendir},
    {.name = "MPI_File_open", .call = Call::MPI_File_open, .path = 1, .file = 4},
    {.name = "MPI_File_close", .call = Call::MPI_File_close},
    {.name = "MPI_File_sync", .call = Call::MPI_File_sync},
    {.name = "MPI_File_set_size", .call = Call::MPI_File_set_size, .size = 1},
    {.name = "MPI_File_set_view", .call = Call::MPI_File_set_view, .offset = 1},
    {.name = "MPI_File_seek", .call = Call::MPI_File_seek, .offset = 1},
    {.name = "MPI_File_seek_shared", .call = Call::MPI_File_seek_shared, .offset = 1}};

/// Functions of MPI-IO that transfer: those with "_at" have the offset first, then all have buffer, count and type.
std::optional<RecorderFunction> mpi_transfer(std::string_view name) {
  const Call call = call_of(name);
  if (call == Call::none || layer_of(call) != Layer::mpi_io || moves_of(call) == Moves::nothing) return std::nullopt;
  const int at = name.find("_at") != std::string_view::npos ? 1 : 0;
  return RecorderFunction{
      .name = name_of(call), .call = call, .size = 2 + at, .offset = at == 1 ? 1 : -1, .factor = 3 + at};
}

std::map<std::string_view, RecorderFunction> all_functions() {
  std::map<std::string_view, RecorderFunction> all;
  for (const RecorderFunction& each : functions) all.emplace(each.name, each);
  for (std::uint16_t number = 1; number < call_limit; ++number)
    if (const auto transfer = mpi_transfer(name_of(static_cast<Call>(number)))) all.emplace(transfer->name, *transfer);
  return all;
}

constexpr std::pair<std::string_view, int> mpi_types[] = {
    {"MPI_BYTE", 1},    {"MPI_CHAR", 1},          {"MPI_SIGNED_CHAR", 1}, {"MPI_UNSIGNED_CHAR", 1},
    {"MPI_SHORT", 2},   {"MPI_INT", 4},           {"MPI_UNSIGNED", 4},    {"MPI_UNSIGNED_SHORT", 2},
    {"MPI_LONG", 8},    {"MPI_UNSIGNED_LONG", 8}, {"MPI_LONG_LONG", 8},   {"MPI_LONG_LONG_INT", 8},
    {"MPI_FLOAT", 4},   {"MPI_DOUBLE", 8},        {"MPI_INT8_T", 1},      {"MPI_UINT8_T", 1},
    {"MPI_INT16_T", 2}, {"MPI_UINT16_T", 2},      {"MPI_INT32_T", 4},     {"MPI_UINT32_T", 4},
    {"MPI_INT64_T", 8}, {"MPI_UINT64_T", 8},      {"MPI_REAL", 4},        {"MPI_DOUBLE_PRECISION", 8},
    {"MPI_INTEGER", 4}, {"MPI_CHARACTER", 1}};

}  // namespace

const RecorderFunction* recorder_function(std::string_view name) {
  static const auto all = all_functions();
  const auto known = all.find(name);
  return known == all.end() ? nullptr : &known->second;
}

std::optional<std::int64_t> bytes_of_mpi_type(std::string_view name) {
  const auto* const known = std::ranges::find(mpi_types, name, &std::pair<std::string_view, int>::first);
  return known == std::end(mpi_types) ? std::nullopt : std::optional<std::int64_t>(known->second);
}

std::int64_t flags_of_mode(std::string_view mode) {
  const bool both = mode.find('+') != std::string_view::npos;
  const char first = mode.empty() ? 'r' : mode.front();
  const int way = both ? O_RDWR : first == 'r' ? O_RDONLY : O_WRONLY;
  return way | (first == 'w' ? O_CREAT | O_TRUNC : first == 'a' ? O_CREAT | O_APPEND : 0);
}

}  // namespace iosig::trace
