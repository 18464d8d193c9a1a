#include "openers.h"

namespace iosig::gcc {
namespace {

/// Bits of libstdc++'s std::ios_base::openmode that a class adds.
enum Openmode { in = 8, out = 16 };

/// Classes of libstdc++ whose constructors and open() open files; `bits` is what the class adds to the mode.
struct StreamClass {
  std::string_view name;
  int bits;
};
constexpr StreamClass stream_classes[] = {
    {"basic_ofstream", out}, {"basic_ifstream", in}, {"basic_fstream", 0}, {"basic_filebuf", 0}};

/// Whether this is a C function: global, visible outside of the unit, and not mangled.
bool has_c_linkage(tree function) {
  return TREE_PUBLIC(function) && DECL_FILE_SCOPE_P(function) &&
         !std::string_view(IDENTIFIER_POINTER(DECL_ASSEMBLER_NAME(function))).starts_with("_Z");
}

std::string_view name_of(tree declaration_or_type) {
  tree name = declaration_or_type;
  if (name != NULL_TREE && TYPE_P(name)) name = TYPE_NAME(name);
  if (name != NULL_TREE && DECL_P(name)) name = DECL_NAME(name);
  return name != NULL_TREE && TREE_CODE(name) == IDENTIFIER_NODE ? IDENTIFIER_POINTER(name) : "";
}

const StreamClass* stream_class_of(tree function) {
  const tree type = DECL_CONTEXT(function);
  if (type == NULL_TREE || TREE_CODE(type) != RECORD_TYPE) return nullptr;
  const tree scope = TYPE_CONTEXT(type);
  if (scope == NULL_TREE || TREE_CODE(scope) != NAMESPACE_DECL || DECL_NAME(scope) == NULL_TREE ||
      std::string_view(IDENTIFIER_POINTER(DECL_NAME(scope))) != "std")
    return nullptr;
  std::string_view name = name_of(type);
  name = name.substr(0, name.find('<'));
  const auto* found = std::find_if(std::begin(stream_classes), std::end(stream_classes),
                                   [&](const StreamClass& known) { return known.name == name; });
  return found == std::end(stream_classes) ? nullptr : found;
}

bool is_char_pointer(tree type) {
  return POINTER_TYPE_P(type) && TREE_CODE(type) != REFERENCE_TYPE &&
         TYPE_MAIN_VARIANT(TREE_TYPE(type)) == char_type_node;
}

/// Describes `function` if it is a constructor or open() of `stream` with a path. The overloads differ in the type of
/// the path, and constructors of base classes have a hidden argument before it. Therefore the path is the first
/// parameter with the type of a path, and the openmode follows it. Default and move constructors have no path.
std::optional<Opener> stream_opener(tree function, const StreamClass& stream) {
  const std::string_view name = name_of(DECL_NAME(function));
  const bool constructs = name.starts_with("__ct") || name == stream.name;
  if (!constructs && name != "open") return std::nullopt;
  int at = 0;
  for (tree parameter = TYPE_ARG_TYPES(TREE_TYPE(function)); parameter != NULL_TREE && parameter != void_list_node;
       parameter = TREE_CHAIN(parameter), ++at) {
    const tree type = TREE_VALUE(parameter);
    if (at == 0 || (!is_char_pointer(type) && !is_path_object(type))) continue;
    return Opener{.name = std::string(stream.name),
                  .interface = OpenInterface::fstream,
                  .path = at,
                  .mode = at + 1,
                  .mode_bits = stream.bits,
                  .path_is_object = !is_char_pointer(type)};
  }
  return std::nullopt;
}

const std::unordered_map<std::string_view, const Opener*>& openers_of_c() {
  static const auto openers = [] {
    std::unordered_map<std::string_view, const Opener*> by_name;
    for (const Opener& opener : known_openers()) by_name.emplace(opener.name, &opener);
    return by_name;
  }();
  return openers;
}

std::map<std::string, Opener, std::less<>>& openers_of_user() {
  static std::map<std::string, Opener, std::less<>> openers;
  return openers;
}

/// DECL_NAMESPACE_INLINE_P of C++, whose header cannot be used here.
bool is_inline_namespace(tree scope) { return TREE_LANG_FLAG_0(scope) != 0; }

/// Returns a name like "io::Writer::open", without template arguments, inline and unnamed namespaces.
std::string qualified_name(tree function) {
  std::string name(name_of(DECL_NAME(function)));
  if (name.starts_with("__ct")) name = std::string(name_of(DECL_CONTEXT(function)));
  for (tree scope = DECL_CONTEXT(function); scope != NULL_TREE;
       scope = TYPE_P(scope) ? TYPE_CONTEXT(scope) : DECL_CONTEXT(scope)) {
    if (TREE_CODE(scope) != NAMESPACE_DECL && !RECORD_OR_UNION_TYPE_P(scope)) break;
    if (TREE_CODE(scope) == NAMESPACE_DECL && is_inline_namespace(scope)) continue;
    const std::string_view outer = name_of(scope);
    if (!outer.empty()) name = std::string(outer.substr(0, outer.find('<'))) + "::" + name;
  }
  return name;
}

}  // namespace

void add_opener(Opener opener) {
  std::string name = opener.name;
  openers_of_user().insert_or_assign(std::move(name), std::move(opener));
}

bool is_path_object(tree type) {
  if (TREE_CODE(type) == REFERENCE_TYPE) type = TREE_TYPE(type);
  if (TREE_CODE(type) != RECORD_TYPE) return false;
  const std::string_view name = name_of(TYPE_MAIN_VARIANT(type));
  return name.starts_with("basic_string<") || name == "basic_string" || name == "path";
}

bool is_openmode(tree type) {
  return TREE_CODE(type) == ENUMERAL_TYPE && name_of(TYPE_MAIN_VARIANT(type)) == "_Ios_Openmode";
}

std::optional<Opener> opener_of(tree function) {
  if (function == NULL_TREE || TREE_CODE(function) != FUNCTION_DECL || DECL_NAME(function) == NULL_TREE)
    return std::nullopt;
  if (const StreamClass* stream = stream_class_of(function)) return stream_opener(function, *stream);
  if (!openers_of_user().empty()) {
    const auto own = openers_of_user().find(qualified_name(function));
    if (own != openers_of_user().end()) return own->second;
  }
  const auto known = openers_of_c().find(name_of(DECL_NAME(function)));
  if (known == openers_of_c().end() || !has_c_linkage(function)) return std::nullopt;
  return *known->second;
}

}  // namespace iosig::gcc
