// Ranks as MPI's processes, each with the file opened by itself: through POSIX, or independently through MPI-IO.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <limits>

#include "iosig/base/text.h"
#include "worker_group.h"

namespace iosig::workloads {
namespace {

class MpiFile : public File {
 public:
  MpiFile(std::string path, MPI_File file) : path_(std::move(path)), file_(file) {}
  MpiFile(const MpiFile&) = delete;
  MpiFile& operator=(const MpiFile&) = delete;
  ~MpiFile() override { MPI_File_close(&file_); }

  // largest_access_bytes fits into the int that MPI counts with.
  Result<void> write(std::uint64_t offset_bytes, std::span<const std::byte> bytes) override {
    MPI_Status status;
    const int failure = MPI_File_write_at(file_, static_cast<MPI_Offset>(offset_bytes), bytes.data(),
                                          static_cast<int>(bytes.size()), MPI_BYTE, &status);
    if (failure != MPI_SUCCESS) return refused("write", failure);
    if (moved(status) != bytes.size())  // what ROMIO and OMPIO make of a full device
      return fail(ErrorKind::infeasible, "cannot write '{}': MPI-IO wrote {} of {} bytes", printable(path_),
                  moved(status), bytes.size());
    return {};
  }

  Result<void> read(std::uint64_t offset_bytes, std::span<std::byte> bytes) override {
    MPI_Status status;
    const int failure = MPI_File_read_at(file_, static_cast<MPI_Offset>(offset_bytes), bytes.data(),
                                         static_cast<int>(bytes.size()), MPI_BYTE, &status);
    if (failure != MPI_SUCCESS) return refused("read", failure);
    if (moved(status) != bytes.size())
      return fail(ErrorKind::infeasible, "'{}' ends at byte {}, but the workload goes on to {}", printable(path_),
                  offset_bytes + moved(status), offset_bytes + bytes.size());
    return {};
  }

  Result<void> sync() override {
    const int failure = MPI_File_sync(file_);
    if (failure != MPI_SUCCESS) return refused("sync", failure);
    return {};
  }

  static Result<std::unique_ptr<File>> opened(const std::string& path, bool for_writing, bool is_one_file) {
    MPI_File file = MPI_FILE_NULL;
    const int failure = MPI_File_open(is_one_file ? MPI_COMM_WORLD : MPI_COMM_SELF, path.c_str(),
                                      for_writing ? MPI_MODE_WRONLY : MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    if (failure != MPI_SUCCESS) return refused("open", path, failure);
    return std::make_unique<MpiFile>(path, file);
  }

 private:
  static std::size_t moved(const MPI_Status& status) {
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    return count == MPI_UNDEFINED ? 0 : static_cast<std::size_t>(count);
  }

  static tl::unexpected<Error> refused(std::string_view doing, const std::string& path, int failure) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    int kind = 0;
    MPI_Error_class(failure, &kind);
    MPI_Error_string(failure, text.data(), &length);
    const bool is_full = kind == MPI_ERR_NO_SPACE || kind == MPI_ERR_QUOTA;
    return fail(is_full ? ErrorKind::infeasible : ErrorKind::system, "cannot {} '{}': {}", doing, printable(path),
                std::string_view(text.data(), static_cast<std::size_t>(length)));
  }
  [[nodiscard]] tl::unexpected<Error> refused(std::string_view doing, int failure) const {
    return refused(doing, path_, failure);
  }

  std::string path_;
  MPI_File file_;
};

class MpiWorkers : public WorkerGroup {
 public:
  MpiWorkers() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  MpiWorkers(const MpiWorkers&) = delete;
  MpiWorkers& operator=(const MpiWorkers&) = delete;
  ~MpiWorkers() override { MPI_Finalize(); }

  [[nodiscard]] std::uint32_t ranks() const override { return static_cast<std::uint32_t>(ranks_); }
  [[nodiscard]] bool is_speaker() const override { return rank_ == 0; }

  Result<void> create(const Job& job) override {
    Result<void> made;
    if (!job.plan.is_one_file || rank_ == 0) made = make(job.path(rank()), job.force);
    if (auto all = agreed(made ? nullptr : &made.error()); !all) {
      remove_made();
      return all;
    }
    return {};
  }

  Result<Outcome> run(const Job& job, Phase phase) override {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    const std::string path = job.path(rank());
    auto file = job.through_mpiio ? MpiFile::opened(path, phase == Phase::write, job.plan.is_one_file)
                                  : open_posix(path, phase == Phase::write);
    // All or none go on, since closing and syncing a shared file through MPI-IO is for all together.
    if (const auto opened = agreed(file ? nullptr : &file.error()); !opened) return pass_on(opened.error());
    const auto tally = perform(job.plan, phase, rank(), **file, [] { return interruption() != 0; });
    Error failure{ErrorKind::system, ""};
    if (!tally) failure = named(tally.error(), path);
    auto all = agreed(tally ? nullptr : &failure);
    if (all && phase == Phase::write && job.sync) {
      const auto synced = (*file)->sync();
      all = agreed(synced ? nullptr : &synced.error());
    }
    file->reset();
    if (!all) return pass_on(all.error());
    const double elapsed = MPI_Wtime() - begin;
    Outcome total;
    MPI_Allreduce(&tally->operations, &total.tally.operations, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&tally->bytes, &total.tally.bytes, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&tally->in_calls_s, &total.tally.in_calls_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&elapsed, &total.elapsed_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return total;
  }

 private:
  [[nodiscard]] std::uint32_t rank() const { return static_cast<std::uint32_t>(rank_); }

  /// The failure of the lowest rank that has one, in all processes.
  [[nodiscard]] Result<void> agreed(const Error* failure) const {
    const int mine = failure != nullptr ? rank_ : std::numeric_limits<int>::max();
    int first = 0;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == std::numeric_limits<int>::max()) return {};
    std::array<int, 2> kind_and_length{};
    std::string message;
    if (rank_ == first) {
      message = failure->message;
      kind_and_length = {static_cast<int>(failure->kind), static_cast<int>(message.size())};
    }
    MPI_Bcast(kind_and_length.data(), 2, MPI_INT, first, MPI_COMM_WORLD);
    message.resize(static_cast<std::size_t>(kind_and_length[1]));
    MPI_Bcast(message.data(), kind_and_length[1], MPI_CHAR, first, MPI_COMM_WORLD);
    return tl::unexpected<Error>(Error{static_cast<ErrorKind>(kind_and_length[0]), message});
  }

  int rank_ = 0, ranks_ = 1;
};

}  // namespace

const bool is_mpi_program = true;

Result<std::unique_ptr<WorkerGroup>> make_worker_group(std::uint32_t threads) {
  if (threads > 0) return fail(ErrorKind::usage, "--threads: MPI's ranks are processes");
  return std::make_unique<MpiWorkers>();
}

}  // namespace iosig::workloads
