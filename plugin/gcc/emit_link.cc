// The mode of the paper, with protection against races. For `fd = open(path, flags, mode)` and the destination D of its
// pragma it emits:
//
//   saved = errno;
//   if (flags create && access(path, F_OK) != 0) {           // a new file, and links may be followed
//     mkdir(directory of D, 0700);                           // for D and its companions
//     claim = open(D, O_CREAT | O_EXCL | O_WRONLY, mode);    // exclusive: one D never serves two files
//     if (claim < 0 || (close(claim), access(D, R_OK | W_OK) != 0) || symlink(D, path) != 0) {
//       if (claim >= 0) unlink(D);
//       rmdir(directory of D);                               // fails while another process uses it
//     }
//   }
//   errno = saved;
//   fd = open(path, flags, mode);
//
// The claim also fails if the directory on the mount point is missing or belongs to another user. The paper has only
// the symlink; docs/decisions/0003-compile-time-destinations.md explains why there is a claim here.
#include <fcntl.h>
#include <unistd.h>

#include "emit.h"
#include "iosig/config/storage_file.h"
#include "iosig/enact/creating.h"
#include "options.h"
#include "plugin/common/destination.h"

namespace iosig::gcc {
namespace {

/// Returns the storage description, which is read once per compilation; null, after a warning, if there is none.
const Storage* storage_of_this_machine(location_t at) {
  static const std::optional<Storage> storage = [&]() -> std::optional<Storage> {
    auto applied = read_applied_storage(options.storage);
    if (!applied) {
      error_at(at, "%s", applied.error().message.c_str());
      return std::nullopt;
    }
    if (!*applied) {
      warning_at(at, OPT_Wpragmas,
                 "no storage description: no file is redirected; make one with %<iosig storage probe%> or name it with "
                 "%<-fplugin-arg-iosig-storage=FILE%>");
      return std::nullopt;
    }
    if (const std::string& fault = (*applied)->system_fault; !fault.empty())
      warning_at(at, OPT_Wpragmas, "%s", fault.c_str());
    return std::move((*applied)->storage);
  }();
  return storage ? &*storage : nullptr;
}

std::optional<std::string> destination_of(const Site& site) {
  const Storage* storage = storage_of_this_machine(site.at);
  if (storage == nullptr) return std::nullopt;
  const expanded_location place = expand_location(site.at);
  const auto destination = choose_destination(site.signature, *storage, {place.file, place.line, place.column});
  if (destination) {
    static bool has_warned = false;  // it is about the storage more than about this stream
    if (!destination->warning.empty() && !has_warned)
      has_warned = warning_at(site.at, OPT_Wpragmas, "%s; declare %s", destination->warning.c_str(), "totalsize(...)");
    return destination->path;
  }
  const auto_diagnostic_group group;
  if (warning_at(site.at, OPT_Wpragmas, "%s", destination.error().summary.c_str()))
    for (const std::string& reason : destination.error().reasons) inform(site.at, "%s", reason.c_str());
  return std::nullopt;
}

/// openmode_creates() as a table: bit `m` is the result for openmode `m` < 64. For larger modes the result is false.
constexpr unsigned long long creating_openmodes = [] {
  unsigned long long table = 0;
  for (int mode = 0; mode < 64; ++mode)
    if (openmode_creates(mode)) table |= 1ull << mode;
  return table;
}();

/// Whether the mode creates the file, as far as the compiler knows.
enum class Creates { no, yes, unknown };

Creates known_to_create(const OpenCall& open, tree mode) {
  const auto known = [](bool creates) { return creates ? Creates::yes : Creates::no; };
  switch (open.opener.interface) {
    case OpenInterface::fopen: {
      const char* text = c_getstr(open.argument(open.opener.mode, null_pointer_node));
      return text == nullptr ? Creates::unknown : known(fopen_mode_creates(text));
    }
    case OpenInterface::library:
    case OpenInterface::open:
      return tree_fits_shwi_p(mode) ? known(flags_create(tree_to_shwi(mode))) : Creates::unknown;
    case OpenInterface::fstream:
      return tree_fits_shwi_p(mode) ? known(openmode_creates(tree_to_shwi(mode))) : Creates::unknown;
    case OpenInterface::unknown: break;  // OpenCall::of has replaced it
  }
  gcc_unreachable();
}

/// Emits a jump to `skip` unless the mode, which is known only at run time, creates the file.
void check_mode(Snippet& code, OpenInterface interface, tree mode, tree skip) {
  if (interface != OpenInterface::fstream) {
    const tree deciding = code.assign(integer_type_node, BIT_AND_EXPR, mode, int_constant(deciding_flags));
    code.jump_unless(EQ_EXPR, deciding, int_constant(creating_flags), skip);
    return;
  }
  const tree wide = long_long_unsigned_type_node;
  const tree index = code.assign(unsigned_type_node, NOP_EXPR, mode, NULL_TREE);
  code.jump_unless(LT_EXPR, index, build_int_cst(unsigned_type_node, 64), skip);
  const tree shifted = code.assign(wide, RSHIFT_EXPR, build_int_cst(wide, creating_openmodes), index);
  const tree bit = code.assign(wide, BIT_AND_EXPR, shifted, build_one_cst(wide));
  code.jump_unless(NE_EXPR, bit, build_zero_cst(wide), skip);
}

/// Returns whether the open may create a file, which is known now or when the program runs. If not, tells the user why.
bool is_redirectable(const OpenCall& open, Creates creates) {
  const char* const name = open.opener.name.c_str();
  if (creates == Creates::no) {
    if (options.verbose) inform(open.at(), "%qs does not create a file: nothing to redirect", name);
    return false;
  }
  if (creates == Creates::unknown && open.opener.interface == OpenInterface::fopen) {
    warning_at(open.at(), OPT_Wpragmas,
               "the mode of %qs is not constant: the file is not redirected; write the mode as a literal, or decide "
               "when the program runs (%<-fplugin-arg-iosig-resolve=run%>)",
               name);
    return false;
  }
  return true;
}

/// Emits `access(path, F_OK)`, for openat `faccessat(dirfd, path, F_OK, 0)`. Returns the result, as the functions below
/// do.
tree call_access(Snippet& code, const OpenCall& open, tree access_of, tree path) {
  if (open.opener.dirfd < 0) return code.call(access_of, {path, int_constant(F_OK)});
  const tree number = integer_type_node;
  const tree function = libc_function("faccessat", number, {number, char_pointer_type(), number, number});
  return code.call(function, {open.dirfd(), path, int_constant(F_OK), integer_zero_node});
}

/// Emits `symlink(target, path)`, for openat `symlinkat(target, dirfd, path)`.
tree call_symlink(Snippet& code, const OpenCall& open, tree target, tree path) {
  const tree number = integer_type_node;
  const tree text = char_pointer_type();
  if (open.opener.dirfd < 0) return code.call(libc_function("symlink", number, {text, text}), {target, path});
  return code.call(libc_function("symlinkat", number, {text, number, text}), {target, open.dirfd(), path});
}

/// Emits `open(target, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode)` with the mode of the user's open.
tree call_claim(Snippet& code, const OpenCall& open, tree target) {
  const tree number = integer_type_node;
  const tree type = build_varargs_function_type_list(number, char_pointer_type(), number, NULL_TREE);
  return code.call(outside_function("open", type), {target, int_constant(O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC),
                                                    open.argument(open.opener.permissions, int_constant(0666))});
}

/// Emits the claim of the destination D and the link to it, for a path without a file:
///
///     if (!(access(path, F_OK) != 0)) goto done;
///     mkdir(directory of D, 0700);
///     claim = open(D, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
///     if (!(claim >= 0)) goto leave;
///     close(claim);
///     if (!(access(D, R_OK | W_OK) == 0)) goto undo;
///     if (!(symlink(D, path) != 0)) goto done;
///   undo:
///     unlink(D);
///   leave:
///     rmdir(directory of D);
///
/// The caller places `done`.
void emit_claim_and_link(Snippet& code, const OpenCall& open, const std::string& destination, tree path, tree done) {
  const tree number = integer_type_node;
  const tree text = char_pointer_type();
  const tree zero = integer_zero_node;
  const tree target = string_constant(destination);
  const tree directory = string_constant(destination.substr(0, destination.rfind('/')));
  const tree access_of = libc_function("access", number, {text, number});  // one declaration for both calls
  const tree undo = code.new_label();
  const tree leave = code.new_label();

  code.jump_unless(NE_EXPR, call_access(code, open, access_of, path), zero, done);
  code.call(libc_function("mkdir", number, {text, unsigned_type_node}),
            {directory, build_int_cst(unsigned_type_node, 0700)});
  const tree claim = call_claim(code, open, target);
  code.jump_unless(GE_EXPR, claim, zero, leave);
  code.call(libc_function("close", number, {number}), {claim});
  const tree refused = code.call(access_of, {target, int_constant(R_OK | W_OK)});
  code.jump_unless(EQ_EXPR, refused, zero, undo);
  const tree linked = call_symlink(code, open, target, path);
  code.jump_unless(NE_EXPR, linked, zero, done);
  code.place(undo);
  code.call(libc_function("unlink", number, {text}), {target});
  code.place(leave);
  code.call(libc_function("rmdir", number, {text}), {directory});
}

}  // namespace

bool emit_link(Snippet& code, const OpenCall& open, const Site& site) {
  const tree mode = open.opener.interface == OpenInterface::fopen ? NULL_TREE : open.mode(code);
  const Creates creates = known_to_create(open, mode);
  if (!is_redirectable(open, creates)) return false;
  const auto destination = destination_of(site);
  if (!destination) return false;

  const tree int_pointer = build_pointer_type(integer_type_node);
  const tree errno_at = code.call(libc_function("__errno_location", int_pointer, {}), {});
  const auto errno_place = [&] { return build2(MEM_REF, integer_type_node, errno_at, build_zero_cst(int_pointer)); };
  const tree saved = code.assign(integer_type_node, errno_place());
  const tree done = code.new_label();
  const tree path = open.path(code, done);
  if (creates == Creates::unknown) check_mode(code, open.opener.interface, mode, done);
  emit_claim_and_link(code, open, *destination, path, done);
  code.place(done);
  code.store(errno_place(), saved);
  return true;
}

}  // namespace iosig::gcc
