// Fuzzes models of reads. Every input is tried as it is and with the checksum that it ought to have; what is read can
// be written again, and predictors can be made from it.
#include "iosig/format/read_model.h"

#include <vector>

#include "iosig/base/crc32c.h"
#include "iosig/decide/predictors.h"
#include "property.h"

using namespace iosig;
using fuzz::hold;

namespace {

constexpr std::uint64_t expanded_reads = 4096;

void ask(ReadPredictor& predictor, FileRead read) {
  for (int turn = 0; turn < 8; ++turn) {
    (void)predictor.observe(read);
    const auto next = predictor.expected(1);
    if (!next) return;
    hold(next->offset >= 0 && next->length >= 0, "an expected read is one that a file can have");
    read = *next;
  }
}

void use(const FileReads& file) {
  if (const auto* const blocks = std::get_if<BlockTransitions>(&file.model)) {
    const auto predictor = markov_predictor(std::make_shared<const BlockTransitions>(*blocks));
    if (!blocks->transitions.empty()) ask(*predictor, {blocks->transitions.front().from * blocks->block_bytes, 1});
    return;
  }
  const auto& pattern = std::get<Pattern>(file.model);
  if (pattern.count() > expanded_reads) return;
  auto reads = reads_of(pattern);
  if (!reads || reads->reads.empty()) return;
  const FileRead last = reads->reads.back();
  ask(*remembered_predictor(std::make_shared<const KnownReads>(std::move(*reads))), last);
}

void check(const std::vector<std::uint8_t>& bytes) {
  const auto model = read_model_from_bytes(bytes, "file");
  if (!model) {
    const std::string& message = model.error().message;
    hold(model.error().kind == ErrorKind::bad_input, "a refusal is bad input", message);
    hold(message.starts_with("file: byte "), "a refusal names the place", message);
    return;
  }
  for (const FileReads& file : model->files) use(file);
  const auto again = read_model_from_bytes(read_model_bytes(*model), "written");
  hold(again && *again == *model, "what is written is read back");
}

}  // namespace

void try_one(std::string_view text) {
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  check(bytes);
  const std::uint32_t checksum = crc32c(bytes);
  for (int n = 0; n < 4; ++n) bytes.push_back(static_cast<std::uint8_t>(checksum >> (8 * n)));
  check(bytes);
}
