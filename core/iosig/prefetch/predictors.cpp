#include "iosig/prefetch/predictors.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <unordered_map>
#include <utility>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/decide/predictors.h"
#include "iosig/format/read_model.h"

namespace iosig::prefetch {
namespace {

PredictorMaker maker_by_name(std::string_view name) {
  if (name == "pattern") return [](const std::string&) { return pattern_predictor(); };
  if (name == "paper") return [](const std::string&) { return paper_predictor(); };
  return {};
}

/// Makes predictors from a model. The streams of a file share its reads, which are expanded while one of them exists.
class ModelPredictors : public std::enable_shared_from_this<ModelPredictors> {
 public:
  ModelPredictors(ReadModel model, PredictorMaker others) : model_(std::move(model)), others_(std::move(others)) {}
  ModelPredictors(const ModelPredictors&) = delete;
  ModelPredictors& operator=(const ModelPredictors&) = delete;
  ~ModelPredictors() {
    if (const OfProcess* const now = of_process_; now != nullptr && now->process == ::getpid()) delete now;
  }

  std::unique_ptr<ReadPredictor> make(const std::string& path) {
    const auto file = longest_path_end(model_.files.begin(), model_.files.end(), path, name_in_paths);
    if (file == model_.files.end()) return others_ ? others_(path) : nullptr;
    if (const auto* const blocks = std::get_if<BlockTransitions>(&file->model))
      return markov_predictor(shared<BlockTransitions>(blocks));
    const auto& pattern = std::get<Pattern>(file->model);
    std::weak_ptr<const KnownReads>& shared_reads = expanded()[&pattern];
    std::shared_ptr<const KnownReads> known = shared_reads.lock();
    if (!known) {
      auto reads = reads_of(pattern);
      if (!reads) return others_ ? others_(path) : nullptr;  // too many, or of another kind
      known = std::make_shared<const KnownReads>(std::move(*reads));
      shared_reads = known;
    }
    return remembered_predictor(std::move(known));
  }

 private:
  using Expanded = std::unordered_map<const Pattern*, std::weak_ptr<const KnownReads>>;
  struct OfProcess {
    pid_t process;
    Expanded reads = {};
  };

  static std::string_view name_in_paths(const FileReads& file) {
    const std::string_view path = file.path;
    return path.substr(std::min(path.find_first_not_of('/'), path.size()));
  }

  /// Refers to a part of the model, and keeps it.
  template <class Part>
  std::shared_ptr<const Part> shared(const Part* part) {
    return {shared_from_this(), part};
  }

  /// The reads of this process. A child made by fork() leaves its parent's, which a thread may just have changed.
  Expanded& expanded() {
    OfProcess* now = of_process_.load();
    if (now == nullptr || now->process != ::getpid()) {
      now = new OfProcess{::getpid()};
      of_process_ = now;
    }
    return now->reads;
  }

  const ReadModel model_;
  const PredictorMaker others_;
  std::atomic<OfProcess*> of_process_{nullptr};
};

}  // namespace

Result<PredictorMaker> predictor_maker(std::string_view name, ReadModel model) {
  if (std::ranges::find(offered_predictors, name) == offered_predictors.end())
    return fail(ErrorKind::usage, "predictor '{}': expected one of {}", printable(name),
                fmt::join(offered_predictors, ", "));
  PredictorMaker others = maker_by_name(name);
  if (model.files.empty()) return others;
  auto made = std::make_shared<ModelPredictors>(std::move(model), std::move(others));
  return PredictorMaker([made](const std::string& path) { return made->make(path); });
}

Result<ReadModel> read_model_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return pass_on(text.error());
  return read_model_from_bytes({reinterpret_cast<const std::uint8_t*>(text->data()), text->size()}, printable(path));
}

}  // namespace iosig::prefetch
