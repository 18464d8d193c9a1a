// Emits the code before an open: a hint to the runtime, or the link to a destination fixed at compile time.
#pragma once

#include "openers.h"
#include "sites.h"
#include "snippet.h"

namespace iosig::gcc {

/// An open that gets a signature. Its arguments are GIMPLE values, so using them again evaluates nothing twice.
struct OpenCall {
  Opener opener;  ///< a user's function counts as `open`, `fopen` or `fstream`, by the types of its arguments
  gcall* call;

  /// Empty for a call that does not match its function's declaration. A user's function that lacks the declared path or
  /// mode is reported once.
  [[nodiscard]] static std::optional<OpenCall> of(gcall* call, const Opener& opener);
  [[nodiscard]] location_t at() const { return gimple_location(call); }
  /// The argument at this index, or `otherwise`.
  [[nodiscard]] tree argument(int index, tree otherwise = NULL_TREE) const;
  /// The path as a char*. The code jumps to `skip` if the path is null (freopen allows it) or is not a plain path.
  [[nodiscard]] tree path(Snippet& code, tree skip) const;
  /// open's flags or the openmode as an int, including the bits that the opener always sets. Bits of I/O libraries are
  /// translated to open's flags.
  [[nodiscard]] tree mode(Snippet& code) const;
  /// The base of a relative path: AT_FDCWD for all but openat.
  [[nodiscard]] tree dirfd() const;
};

/// Emits `if (iosig_open_hint) iosig_open_hint(dirfd, path, flags, "signature");` or one of its variants. The symbol is
/// weak, so the program also links and runs without libiosig.
void emit_hint(Snippet& code, const OpenCall& open, const Site& site);

/// The paper's mode: makes `path` a link to the site's destination if the open will create a file. Returns false, after
/// a diagnostic, if it emitted no code; the open then stays as it is.
[[nodiscard]] bool emit_link(Snippet& code, const OpenCall& open, const Site& site);

/// Declares a libc function with these parameters.
[[nodiscard]] tree libc_function(const char* name, tree result, std::initializer_list<tree> parameters);

/// The program's own declaration of the function with the assembler name `name`, or a new one.
[[nodiscard]] tree outside_function(const char* name, tree type, bool weak = false);
[[nodiscard]] tree char_pointer_type();
[[nodiscard]] tree string_constant(const std::string& text);
[[nodiscard]] tree int_constant(int value);

}  // namespace iosig::gcc
