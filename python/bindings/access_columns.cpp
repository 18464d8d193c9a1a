#include "access_columns.h"

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "iosig/base/text.h"

namespace iosig::python {
namespace {

using trace::Access;

/// Which values of a column are not null: a bit for each, the lowest first. There are none before the first null.
class Validity {
 public:
  void push(bool is_valid) {
    const auto byte = static_cast<std::size_t>(count_ / 8);
    if ((!is_valid || !bits_.empty()) && bits_.size() <= byte) bits_.resize(byte + 1, 0xff);
    if (!is_valid) {
      bits_[byte] &= static_cast<std::uint8_t>(~(1U << count_ % 8));
      ++nulls_;
    }
    ++count_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t nulls() const { return nulls_; }
  [[nodiscard]] const void* bits() const { return nulls_ == 0 ? nullptr : bits_.data(); }

 private:
  std::vector<std::uint8_t> bits_;
  std::int64_t count_ = 0, nulls_ = 0;
};

template <class Value>
inline constexpr const char* format_of = sizeof(Value) == 8 ? "l" : "i";

template <class Value>
struct Values {
  std::vector<Value> values;
  Validity validity;

  /// Moves them out, and makes room for as many.
  [[nodiscard]] std::shared_ptr<Values> take() {
    auto taken = std::make_shared<Values>(std::exchange(*this, {}));
    values.reserve(taken->values.size());
    return taken;
  }
};

/// get(entry) is the value, or nothing for null.
template <class Value, auto get>
class Numbers : public Column {
 public:
  explicit Numbers(std::string name) : name_(std::move(name)) {}

  void append(std::span<const Entry> entries) override {
    for (const Entry& each : entries) {
      const std::optional<Value> value = get(each);
      values_.values.push_back(value.value_or(0));
      values_.validity.push(value.has_value());
    }
  }

  ArrowArray take() override {
    const auto taken = values_.take();
    ArrowArray array;
    fill_array(array, {.length = taken->validity.count(),
                       .nulls = taken->validity.nulls(),
                       .data = taken,
                       .buffers = {taken->validity.bits(), taken->values.data()},
                       .children = {},
                       .dictionary = {}});
    return array;
  }

  [[nodiscard]] ArrowSchema schema() const override {
    ArrowSchema schema;
    fill_schema(schema, {.format = format_of<Value>,
                         .name = name_,
                         .metadata = {},
                         .is_nullable = true,
                         .children = {},
                         .dictionary = {}});
    return schema;
  }

 private:
  std::string name_;
  Values<Value> values_;
};

/// Different texts, one after another.
struct Texts {
  std::vector<std::int32_t> ends{0};
  std::string bytes;

  void push(std::string_view text) {
    bytes += text;
    ends.push_back(static_cast<std::int32_t>(bytes.size()));
  }
};

/// get(entry) is a text that stays at its address, empty for null. Each batch has a dictionary of its own, so memory
/// does not grow with the number of different texts in the trace.
template <auto get>
class Names : public Column {
 public:
  explicit Names(std::string name) : name_(std::move(name)) {}

  void append(std::span<const Entry> entries) override {
    for (const Entry& each : entries) {
      const std::string_view text = get(each);
      numbers_.values.push_back(text.empty() ? 0 : number_of(text));
      numbers_.validity.push(!text.empty());
    }
  }

  ArrowArray take() override {
    const auto texts = std::make_shared<Texts>(std::exchange(texts_, {}));
    ArrayParts parts{.length = 0, .nulls = 0, .data = {}, .buffers = {}, .children = {}, .dictionary = {}};
    ArrowArray& dictionary = parts.dictionary.emplace_back();
    fill_array(dictionary, {.length = static_cast<std::int64_t>(texts->ends.size()) - 1,
                            .nulls = 0,
                            .data = texts,
                            .buffers = {nullptr, texts->ends.data(), texts->bytes.data()},
                            .children = {},
                            .dictionary = {}});
    const auto numbers = numbers_.take();
    parts.length = numbers->validity.count();
    parts.nulls = numbers->validity.nulls();
    parts.data = numbers;
    parts.buffers = {numbers->validity.bits(), numbers->values.data()};
    by_address_.clear();
    by_text_.clear();
    last_ = nullptr;
    ArrowArray array;
    fill_array(array, std::move(parts));
    return array;
  }

  [[nodiscard]] ArrowSchema schema() const override {
    SchemaParts parts{
        .format = "i", .name = name_, .metadata = {}, .is_nullable = true, .children = {}, .dictionary = {}};
    fill_schema(parts.dictionary.emplace_back(),
                {.format = "u", .name = "", .metadata = {}, .is_nullable = true, .children = {}, .dictionary = {}});
    ArrowSchema schema;
    fill_schema(schema, std::move(parts));
    return schema;
  }

 private:
  std::int32_t number_of(std::string_view text) {
    if (text.data() == last_) return last_number_;
    const auto [known, is_new] = by_address_.try_emplace(text.data(), 0);
    if (is_new) {
      const std::string shown = printable(text);
      const auto [same, is_new_text] = by_text_.try_emplace(shown, static_cast<std::int32_t>(by_text_.size()));
      if (is_new_text) texts_.push(shown);
      known->second = same->second;
    }
    last_ = text.data();
    last_number_ = known->second;
    return last_number_;
  }

  std::string name_;
  Values<std::int32_t> numbers_;
  Texts texts_;
  std::unordered_map<const char*, std::int32_t> by_address_;
  std::unordered_map<std::string, std::int32_t> by_text_;
  const char* last_ = nullptr;
  std::int32_t last_number_ = 0;
};

// ---- the fields ---------------------------------------------------------------------------------------------------

using Long = std::optional<std::int64_t>;
using Int = std::optional<std::int32_t>;

Long id_of(const Entry& e) { return static_cast<std::int64_t>(e.access.id); }
Long parent_of(const Entry& e) { return static_cast<std::int64_t>(e.access.parent); }
std::string_view host_of(const Entry& e) { return e.access.process->host; }
Int pid_of(const Entry& e) { return e.access.process->pid; }
Int tid_of(const Entry& e) { return e.access.tid; }
Long rank_of(const Entry& e) { return e.access.process->rank; }
std::string_view layer_name_of(const Entry& e) {
  return trace::layer_names[static_cast<std::size_t>(trace::layer_of(e.access.call))];
}
std::string_view call_name_of(const Entry& e) { return trace::name_of(e.access.call); }
std::string_view path_of(const Entry& e) { return e.access.path; }
Int fd_of(const Entry& e) { return e.access.fd >= 0 ? Int(e.access.fd) : Int(); }
Long offset_of(const Entry& e) { return e.access.offset != trace::no_offset ? Long(e.access.offset) : Long(); }
Long length_of(const Entry& e) { return e.access.length != trace::no_length ? Long(e.access.length) : Long(); }
Long start_of(const Entry& e) { return e.access.start_ns; }
Long end_of(const Entry& e) { return e.access.is_in_flight ? Long() : Long(e.access.end_ns); }
Long result_of(const Entry& e) { return e.access.is_in_flight ? Long() : Long(e.access.result); }
std::string_view second_path_of(const Entry& e) { return e.access.second_path; }
std::string_view trace_of(const Entry& e) { return e.trace; }

struct Field {
  std::string name;
  std::function<std::unique_ptr<Column>(const std::string& name)> make;
};

template <class Kind>
std::unique_ptr<Column> made_column(const std::string& name) {
  return std::make_unique<Kind>(name);
}

const std::vector<Field>& fields() {
  using std::int32_t, std::int64_t;
  static const std::vector<Field> all = {{"id", made_column<Numbers<int64_t, id_of>>},
                                         {"parent", made_column<Numbers<int64_t, parent_of>>},
                                         {"host", made_column<Names<host_of>>},
                                         {"pid", made_column<Numbers<int32_t, pid_of>>},
                                         {"tid", made_column<Numbers<int32_t, tid_of>>},
                                         {"rank", made_column<Numbers<int64_t, rank_of>>},
                                         {"layer", made_column<Names<layer_name_of>>},
                                         {"call", made_column<Names<call_name_of>>},
                                         {"path", made_column<Names<path_of>>},
                                         {"fd", made_column<Numbers<int32_t, fd_of>>},
                                         {"offset", made_column<Numbers<int64_t, offset_of>>},
                                         {"length", made_column<Numbers<int64_t, length_of>>},
                                         {"start_ns", made_column<Numbers<int64_t, start_of>>},
                                         {"end_ns", made_column<Numbers<int64_t, end_of>>},
                                         {"result", made_column<Numbers<int64_t, result_of>>},
                                         {"second_path", made_column<Names<second_path_of>>},
                                         {"trace", made_column<Names<trace_of>>}};
  return all;
}

}  // namespace

const std::vector<std::string>& column_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> listed;
    for (const Field& each : fields()) listed.push_back(each.name);
    return listed;
  }();
  return names;
}

std::unique_ptr<Column> make_column(std::string_view name) {
  for (const Field& each : fields())
    if (each.name == name) return each.make(each.name);
  return nullptr;
}

}  // namespace iosig::python
