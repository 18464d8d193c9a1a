#include "arrow.h"

#include <utility>

namespace iosig::python {
namespace {

constexpr std::int64_t nullable_flag = 2;  // ARROW_FLAG_NULLABLE

template <class Parts, class Node>
struct Owner {
  Parts parts;
  std::vector<Node*> children;
};

/// Frees what fill_array() or fill_schema() allocated. A consumer may have moved children elsewhere; their release is
/// null then.
template <class Parts, class Node>
void release_node(Node* node) {
  auto* const owner = static_cast<Owner<Parts, Node>*>(node->private_data);
  for (auto* const nodes : {&owner->parts.children, &owner->parts.dictionary})
    for (Node& each : *nodes)
      if (each.release != nullptr) each.release(&each);
  delete owner;
  node->release = nullptr;
}

template <class Parts, class Node>
Owner<Parts, Node>& own_parts(Node& node, Parts parts) {
  auto* const owner = new Owner<Parts, Node>{std::move(parts), {}};
  for (Node& each : owner->parts.children) owner->children.push_back(&each);
  node.n_children = static_cast<std::int64_t>(owner->children.size());
  node.children = owner->children.data();
  node.dictionary = owner->parts.dictionary.empty() ? nullptr : owner->parts.dictionary.data();
  node.release = release_node<Parts, Node>;
  node.private_data = owner;
  return *owner;
}

void append_length(std::string& text, std::size_t length) {
  const auto number = static_cast<std::int32_t>(length);
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

void fill_array(ArrowArray& array, ArrayParts parts) {
  array = {};
  auto& owner = own_parts(array, std::move(parts));
  array.length = owner.parts.length;
  array.null_count = owner.parts.nulls;
  array.n_buffers = static_cast<std::int64_t>(owner.parts.buffers.size());
  array.buffers = owner.parts.buffers.data();
}

void fill_schema(ArrowSchema& schema, SchemaParts parts) {
  schema = {};
  auto& owner = own_parts(schema, std::move(parts));
  schema.format = owner.parts.format.c_str();
  schema.name = owner.parts.name.c_str();
  schema.metadata = owner.parts.metadata.empty() ? nullptr : owner.parts.metadata.c_str();
  schema.flags = owner.parts.is_nullable ? nullable_flag : 0;
}

std::string arrow_metadata(const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string text;
  append_length(text, pairs.size());
  for (const auto& [key, value] : pairs)
    for (const std::string& each : {key, value}) {
      append_length(text, each.size());
      text += each;
    }
  return text;
}

}  // namespace iosig::python
