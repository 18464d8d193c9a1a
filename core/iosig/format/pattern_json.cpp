#include "iosig/format/pattern_json.h"

#include <algorithm>

#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/format/pattern_binary.h"
#include "iosig/model/access_columns.h"
#include "iosig/model/literals.h"
#include "iosig/model/nest.h"
#include "iosig/model/pattern_builder.h"

namespace iosig {
namespace {

using nlohmann::ordered_json;

// ---- writing ------------------------------------------------------------------------------------------------------

ordered_json node_json(const Pattern& pattern, std::uint32_t node, std::size_t depth) {
  const Node& it = pattern.nodes[node];
  const auto group = [&](std::uint32_t n) {
    const auto first = pattern.numbers.begin() + static_cast<std::ptrdiff_t>(it.numbers + n * (depth + 1));
    return ordered_json(std::vector<std::int64_t>(first, first + static_cast<std::ptrdiff_t>(depth + 1)));
  };
  if (!it.is_loop) {
    ordered_json columns = ordered_json::array();
    for (std::uint32_t column = 0; column < pattern.columns; ++column) columns.push_back(group(column));
    return {{"vector", std::move(columns)}};
  }
  ordered_json body = ordered_json::array();
  for (std::uint32_t child = node + 1; child < it.end; child = pattern.nodes[child].end)
    body.push_back(node_json(pattern, child, depth + 1));
  return {{"trips", group(0)}, {"body", std::move(body)}};
}

ordered_json vectors_json(std::span<const std::int64_t> values, std::uint32_t columns) {
  ordered_json vectors = ordered_json::array();
  for (std::size_t at = 0; at < values.size(); at += columns)
    vectors.push_back(std::vector<std::int64_t>(values.begin() + static_cast<std::ptrdiff_t>(at),
                                                values.begin() + static_cast<std::ptrdiff_t>(at + columns)));
  return vectors;
}

// ---- reading ------------------------------------------------------------------------------------------------------

/// Maximum depth of a document: each loop is an object in an array.
constexpr int max_pattern_depth = 3 * static_cast<int>(max_nest_depth) + 16;

class JsonReader {
 public:
  JsonReader(const ordered_json& document, std::string_view source) : document_(document), source_(source) {}

  Result<Pattern> pattern() {
    const ordered_json* columns = member(document_, "columns");
    if (!columns || !columns->is_number_unsigned() || *columns < 1u || *columns > max_columns)
      return refuse("/columns", fmt::format("expected a number from 1 to {}", max_columns));
    columns_ = columns->get<std::uint32_t>();
    std::array<std::int8_t, max_columns> follows = {-1, -1, -1, -1, -1, -1, -1, -1};
    if (const ordered_json* followed = member(document_, "follows")) {
      if (!followed->is_array() || followed->size() != columns_)
        return refuse("/follows", "expected an array with an entry for each column");
      for (std::uint32_t column = 0; column < columns_; ++column) {
        const ordered_json& it = (*followed)[column];
        if (it.is_null()) continue;
        if (!it.is_number_unsigned() || it >= columns_)
          return refuse("/follows", "expected null, or the index of a column");
        follows[column] = it.get<std::int8_t>();
      }
    }
    std::array<Column, max_columns> kinds{};
    if (const ordered_json* names = member(document_, "names")) {
      if (!names->is_array() || names->size() != columns_)
        return refuse("/names", "expected an array with a name or null for each column");
      for (std::uint32_t column = 0; column < columns_; ++column) {
        const ordered_json& it = (*names)[column];
        if (it.is_null()) continue;
        kinds[column] = it.is_string() ? column_of(it.get_ref<const std::string&>()) : Column::any;
        if (kinds[column] == Column::any)
          return refuse("/names", "expected null, logical, length, physical, id or sequence");
      }
    }
    PatternBuilder builder(columns_, follows);
    const ordered_json* terms = member(document_, "description");
    if (!terms || !terms->is_array()) return refuse("/description", "expected an array of terms");
    for (std::size_t n = 0; n < terms->size(); ++n)
      if (auto read = add_term((*terms)[n], fmt::format("/description/{}", n), builder); !read)
        return pass_on(std::move(read.error()));
    if (const ordered_json* exceptions = member(document_, "exceptions"))
      if (auto read = add_exceptions(*exceptions, builder); !read) return pass_on(std::move(read.error()));
    Pattern pattern = builder.finish();
    pattern.kinds = kinds;
    if (auto sound = checked(pattern); !sound) return refuse("/description", sound.error().message);
    const ordered_json* count = member(document_, "count");
    if (!count || *count != pattern.count())
      return refuse("/count",
                    fmt::format("expected {}: the description stands for that many vectors", pattern.count()));
    return pattern;
  }

 private:
  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view place, std::string_view what) const {
    return fail(ErrorKind::bad_input, "{}: {}: {}", source_, place, what);
  }

  static const ordered_json* member(const ordered_json& object, const char* name) {
    const auto found = object.find(name);
    return found == object.end() ? nullptr : &*found;
  }

  /// Appends `count` integers to `numbers`.
  Result<void> add_numbers(const ordered_json* array, std::size_t count, std::string_view place,
                           std::vector<std::int64_t>& numbers) const {
    if (!array || !array->is_array() || array->size() != count)
      return refuse(place, fmt::format("expected {} integers", count));
    for (const ordered_json& number : *array) {
      if (!number.is_number_integer() || (number.is_number_unsigned() && number > std::uint64_t{INT64_MAX}))
        return refuse(place, "expected integers from -2^63 to 2^63 - 1");
      numbers.push_back(number.get<std::int64_t>());
    }
    return {};
  }

  Result<void> add_term(const ordered_json& term, const std::string& place, PatternBuilder& builder) {
    if (!term.is_object()) return refuse(place, "expected an object");
    if (const ordered_json* vectors = member(term, "literals")) {
      if (!vectors->is_array() || vectors->empty() || vectors->size() > block_vectors)
        return refuse(place + "/literals", fmt::format("expected 1 to {} vectors", block_vectors));
      builder.end_block();
      for (const ordered_json& vector : *vectors) {
        numbers_.clear();
        if (auto read = add_numbers(&vector, columns_, place + "/literals", numbers_); !read) return read;
        builder.add_literal(numbers_.data());
      }
      builder.end_block();
      return {};
    }
    nodes_.clear();
    numbers_.clear();
    if (auto read = add_node(term, 0, place); !read) return read;
    const NestView nest{nodes_.data(), numbers_.data(), columns_};
    if (const std::string fault = fault_of(nest, 0); !fault.empty()) return refuse(place, "a nest with " + fault);
    const std::uint64_t count = count_of(nest, 0, {});
    if (count > max_elements - builder.count()) return refuse(place, "more than 2^63 - 1 elements");
    builder.add_nest(nodes_, numbers_, count);
    return {};
  }

  Result<void> add_node(const ordered_json& it, std::size_t depth, const std::string& place) {
    if (!it.is_object()) return refuse(place, "expected an object");
    if (depth > max_nest_depth) return refuse(place, fmt::format("more than {} loops in each other", max_nest_depth));
    const std::size_t me = nodes_.size();
    const ordered_json* vector = member(it, "vector");
    nodes_.push_back({vector == nullptr, 0, static_cast<std::uint32_t>(numbers_.size())});
    if (vector) {
      if (!vector->is_array() || vector->size() != columns_)
        return refuse(place + "/vector", fmt::format("expected an array for each of {} columns", columns_));
      for (const ordered_json& column : *vector)
        if (auto read = add_numbers(&column, depth + 1, place + "/vector", numbers_); !read) return read;
    } else {
      const ordered_json* body = member(it, "body");
      if (!body || !body->is_array() || body->empty())
        return refuse(place, "expected \"vector\", or \"trips\" and a \"body\" that is not empty");
      if (auto read = add_numbers(member(it, "trips"), depth + 1, place + "/trips", numbers_); !read) return read;
      for (std::size_t n = 0; n < body->size(); ++n)
        if (auto read = add_node((*body)[n], depth + 1, fmt::format("{}/body/{}", place, n)); !read) return read;
    }
    nodes_[me].end = static_cast<std::uint32_t>(nodes_.size());
    return {};
  }

  Result<void> add_exceptions(const ordered_json& exceptions, PatternBuilder& builder) {
    if (!exceptions.is_array()) return refuse("/exceptions", "expected an array");
    for (std::size_t n = 0; n < exceptions.size(); ++n) {
      const std::string place = fmt::format("/exceptions/{}", n);
      const ordered_json* position = exceptions[n].is_object() ? member(exceptions[n], "position") : nullptr;
      if (!position || !position->is_number_unsigned())
        return refuse(place, "expected a \"position\" and a \"vector\"");
      numbers_.clear();
      if (auto read = add_numbers(member(exceptions[n], "vector"), columns_, place + "/vector", numbers_); !read)
        return read;
      builder.add_exception(position->get<std::uint64_t>(), numbers_.data());
    }
    return {};
  }

  const ordered_json& document_;
  std::string_view source_;
  std::uint32_t columns_ = 1;
  std::vector<Node> nodes_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace

ordered_json pattern_json(const Pattern& pattern) {
  ordered_json follows = ordered_json::array(), description = ordered_json::array();
  for (std::uint32_t column = 0; column < pattern.columns; ++column)
    follows.push_back(pattern.follows[column] < 0 ? ordered_json() : ordered_json(pattern.follows[column]));
  std::vector<std::int64_t> block;
  for (const Term& term : pattern.terms) {
    if (term.is_nest) {
      description.push_back(node_json(pattern, static_cast<std::uint32_t>(term.at), 0));
    } else {
      (void)read_block(std::span(pattern.literals).subspan(term.at), pattern.columns, block);
      description.push_back({{"literals", vectors_json(block, pattern.columns)}});
    }
  }
  ordered_json exceptions = ordered_json::array();
  const std::span<const std::int64_t> values(pattern.exception_values);
  for (std::size_t n = 0; n < pattern.exception_positions.size(); ++n)
    exceptions.push_back(
        {{"position", pattern.exception_positions[n]},
         {"vector", vectors_json(values.subspan(n * pattern.columns, pattern.columns), pattern.columns)[0]}});
  ordered_json document = {{"count", pattern.count()},
                           {"terms", pattern.terms.size()},
                           {"bytes", pattern_bytes(pattern).size()},
                           {"columns", pattern.columns}};
  if (const auto names = column_names(pattern); !names.empty()) {
    for (const std::string& name : names)
      document["names"].push_back(name.empty() ? ordered_json() : ordered_json(name));
  }
  document.update({{"follows", std::move(follows)},
                   {"description", std::move(description)},
                   {"exceptions", std::move(exceptions)}});
  return document;
}

Result<Pattern> pattern_from_json(std::string_view text, std::string_view source) {
  if (json_depth(text) > max_pattern_depth)
    return fail(ErrorKind::bad_input, "{}: more than {} loops in each other", source, max_nest_depth);
  const ordered_json document = parse_json(text, max_pattern_depth);
  if (document.is_discarded() || !document.is_object()) {
    const std::string_view begin = trimmed(text.substr(0, 64));
    if (begin.empty()) return fail(ErrorKind::bad_input, "{}: it is empty; expected a description", source);
    if (begin.find_first_of("0123456789-#") == 0)
      return fail(ErrorKind::bad_input,
                  "{}: this looks like vectors, not like a description; 'iosig pattern detect' makes one of them",
                  source);
    return fail(ErrorKind::bad_input, "{}: this is not a JSON object; was it cut?", source);
  }
  const auto schema = document.find("schema");
  if (schema == document.end() || *schema != pattern_schema)
    return fail(ErrorKind::bad_input, "{}: /schema: expected \"{}\", found {}", source, pattern_schema,
                schema == document.end() ? "none" : printable(json_ascii_line(*schema)));
  return JsonReader(document, source).pattern();
}

}  // namespace iosig
