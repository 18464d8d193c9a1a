#include "iosig/prefetch/declared_predictors.h"

#include <sys/stat.h>

#include <cstdint>
#include <span>
#include <utility>

#include "iosig/base/files.h"
#include "iosig/base/text.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/format/pattern_json.h"
#include "iosig/format/read_model.h"
#include "iosig/format/read_order.h"
#include "iosig/prefetch/predictors.h"

namespace iosig::prefetch {
namespace {

/// Identifies the content of a file. Empty: there is none.
std::string identity_of(const DeclaredReads& declared) {
  struct stat status {};
  if (::stat(declared.file.c_str(), &status) != 0) return {};
  return fmt::format("{} {} {} {} {}.{} {}", declared.form == DeclaredReads::Form::order ? "order" : "pattern",
                     status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec,
                     declared.file);
}

Result<DeclaredContent> read_pattern(const std::string& text, const std::string& shown) {
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  const auto as_content = [&](const Pattern& pattern) {
    return reads_of(pattern)
        .map([](KnownReads&& known) { return DeclaredContent(std::move(known)); })
        .map_error([&](Error&& error) {
          return Error{error.kind, shown + ": " + error.message};
        });
  };
  if (text.starts_with("IOP")) return pattern_from_bytes(bytes, shown).and_then(as_content);
  if (text.starts_with('{')) return pattern_from_json(text, shown).and_then(as_content);
  return read_model_from_bytes(bytes, shown).map([](ReadModel&& model) { return DeclaredContent(std::move(model)); });
}

}  // namespace

Result<DeclaredContent> read_declared(const DeclaredReads& declared) {
  const bool is_order = declared.form == DeclaredReads::Form::order;
  const auto text = is_order ? read_file(declared.file, max_order_bytes) : read_file(declared.file);
  if (!text) return pass_on(text.error());
  const std::string shown = printable(declared.file);
  if (!is_order) return read_pattern(*text, shown);
  return parse_read_order(*text, shown).map([](KnownReads&& known) { return DeclaredContent(std::move(known)); });
}

Result<std::shared_ptr<const DeclaredContent>> DeclaredPredictors::content_of(const DeclaredReads& declared) {
  Contents& contents = contents_.get();
  std::erase_if(contents, [](const auto& each) { return each.second.expired(); });
  const std::string identity = identity_of(declared);
  if (const auto known = contents.find(identity); known != contents.end()) {
    if (auto content = known->second.lock()) return content;
  }
  auto read = read_declared(declared);
  if (!read) return pass_on(std::move(read.error()));
  auto content = std::make_shared<const DeclaredContent>(*std::move(read));
  if (!identity.empty()) contents.insert_or_assign(identity, content);
  return content;
}

Result<std::unique_ptr<ReadPredictor>> DeclaredPredictors::make(const DeclaredReads& declared,
                                                                const std::string& path) {
  const auto content = content_of(declared);
  if (!content) return pass_on(content.error());
  if (const auto* const known = std::get_if<KnownReads>(content->get())) return records_predictor({*content, known});
  const auto& model = std::get<ReadModel>(**content);
  const FileReads* const file = model.files.size() == 1 ? model.files.data() : find_file(model, path);
  if (file == nullptr)
    return fail(ErrorKind::bad_input, "{}: it has {} files, but not this one", printable(declared.file),
                model.files.size());
  if (const auto* const blocks = std::get_if<BlockTransitions>(&file->model))
    return markov_predictor({*content, blocks});
  auto reads = reads_of(std::get<Pattern>(file->model));
  if (!reads) return fail(reads.error().kind, "{}: {}", printable(declared.file), reads.error().message);
  return remembered_predictor(std::make_shared<const KnownReads>(*std::move(reads)));
}

}  // namespace iosig::prefetch
