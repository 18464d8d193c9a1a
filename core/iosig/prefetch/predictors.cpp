#include "iosig/prefetch/predictors.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/decide/predictors.h"
#include "iosig/format/read_model.h"
#include "iosig/prefetch/declared_predictors.h"
#include "iosig/prefetch/per_process.h"

namespace iosig::prefetch {
namespace {

PredictorMaker maker_by_name(std::string_view name) {
  if (name == "pattern") return [](const std::string&) { return MadePredictor{pattern_predictor()}; };
  if (name == "paper") return [](const std::string&) { return MadePredictor{paper_predictor()}; };
  return {};
}

/// Makes predictors from what is known of files. The streams of a file share the model's reads of it, which are
/// expanded while one of them exists.
class KnownPredictors : public std::enable_shared_from_this<KnownPredictors> {
 public:
  KnownPredictors(PredictorSources sources, PredictorMaker others)
      : sources_(std::move(sources)), others_(std::move(others)) {}

  MadePredictor make(const std::string& path) {
    std::string note;
    if (const auto declared = sources_.declared ? sources_.declared(path) : std::nullopt) {
      auto predictor = declared_.make(*declared, path);
      if (predictor) return {*std::move(predictor)};
      note = "its declared reads are not used: " + predictor.error().message;
    }
    MadePredictor made{of_model(path), std::move(note)};
    if (!made.predictor && others_) made.predictor = others_(path).predictor;
    return made;
  }

 private:
  using Expanded = std::unordered_map<const Pattern*, std::weak_ptr<const KnownReads>>;

  /// null: the model does not have the file, or too many of its reads, or another kind of pattern.
  std::unique_ptr<ReadPredictor> of_model(const std::string& path) {
    const FileReads* const file = find_file(sources_.model, path);
    if (file == nullptr) return nullptr;
    if (const auto* const blocks = std::get_if<BlockTransitions>(&file->model))
      return markov_predictor({shared_from_this(), blocks});
    const auto& pattern = std::get<Pattern>(file->model);
    std::weak_ptr<const KnownReads>& shared_reads = expanded_.get()[&pattern];
    std::shared_ptr<const KnownReads> known = shared_reads.lock();
    if (!known) {
      auto reads = reads_of(pattern);
      if (!reads) return nullptr;
      known = std::make_shared<const KnownReads>(std::move(*reads));
      shared_reads = known;
    }
    return remembered_predictor(std::move(known));
  }

  const PredictorSources sources_;
  const PredictorMaker others_;
  DeclaredPredictors declared_;
  PerProcess<Expanded> expanded_;
};

}  // namespace

const FileReads* find_file(const ReadModel& model, const std::string& path) {
  const auto name_in_paths = [](const FileReads& file) -> std::string_view {
    const std::string_view whole = file.path;
    return whole.substr(std::min(whole.find_first_not_of('/'), whole.size()));
  };
  const auto file = longest_path_end(model.files.begin(), model.files.end(), path, name_in_paths);
  return file == model.files.end() ? nullptr : &*file;
}

Result<PredictorMaker> predictor_maker(std::string_view name, PredictorSources sources) {
  if (std::ranges::find(offered_predictors, name) == offered_predictors.end())
    return fail(ErrorKind::usage, "predictor '{}': expected one of {}", printable(name),
                fmt::join(offered_predictors, ", "));
  PredictorMaker others = maker_by_name(name);
  if (sources.model.files.empty() && !sources.declared) return others;
  auto made = std::make_shared<KnownPredictors>(std::move(sources), std::move(others));
  return PredictorMaker([made](const std::string& path) { return made->make(path); });
}

Result<ReadModel> read_model_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return pass_on(text.error());
  return read_model_from_bytes({reinterpret_cast<const std::uint8_t*>(text->data()), text->size()}, printable(path));
}

}  // namespace iosig::prefetch
