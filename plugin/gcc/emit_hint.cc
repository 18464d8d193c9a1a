#include "emit.h"

namespace iosig::gcc {
namespace {

tree hint_function(OpenInterface interface) {
  const tree text = char_pointer_type();
  const tree number = integer_type_node;
  const auto declare = [](const char* name, auto... parameters) {
    return outside_function(name, build_function_type_list(void_type_node, parameters..., NULL_TREE), /*weak=*/true);
  };
  switch (interface) {
    case OpenInterface::library:
    case OpenInterface::open: return declare("iosig_open_hint", number, text, number, text);
    case OpenInterface::fopen: return declare("iosig_fopen_hint", text, text, text);
    case OpenInterface::fstream: return declare("iosig_fstream_hint", text, number, text);
    case OpenInterface::unknown: break;  // OpenCall::of has replaced it
  }
  gcc_unreachable();
}

}  // namespace

void emit_hint(Snippet& code, const OpenCall& open, const Site& site) {
  const tree function = hint_function(open.opener.interface);
  const tree skip = code.new_label();
  const tree address = code.assign(ptr_type_node, build1(ADDR_EXPR, ptr_type_node, function));
  code.jump_unless(NE_EXPR, address, null_pointer_node, skip);
  const tree path = open.path(code, skip);
  const tree signature = string_constant(site.text);
  switch (open.opener.interface) {
    case OpenInterface::library:
    case OpenInterface::open: code.call(function, {open.dirfd(), path, open.mode(code), signature}); break;
    case OpenInterface::fopen: code.call(function, {path, open.argument(open.opener.mode), signature}); break;
    case OpenInterface::fstream: code.call(function, {path, open.mode(code), signature}); break;
    case OpenInterface::unknown: gcc_unreachable();
  }
  code.place(skip);
}

}  // namespace iosig::gcc
