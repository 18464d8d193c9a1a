// The code that goes before an open: a hint to the runtime, or the link of a destination known already.
#pragma once

#include "openers.h"
#include "sites.h"
#include "snippet.h"

namespace iosig::gcc {

/// The open that gets a signature. Its arguments are GIMPLE values: using them again evaluates nothing again.
struct OpenCall {
  Opener opener;  ///< of the user's: `open`, `fopen` or `fstream`, as its arguments' types say
  gcall* call;

  /// Nothing for a call that does not fit its function's declaration, and for a user's function without a path or mode
  /// where it was declared to have them, which is told once.
  [[nodiscard]] static std::optional<OpenCall> of(gcall* call, const Opener& opener);
  [[nodiscard]] location_t at() const { return gimple_location(call); }
  /// The argument, or `otherwise` when the call has none at this index.
  [[nodiscard]] tree argument(int index, tree otherwise = NULL_TREE) const;
  /// The path as a char*. The code leaves for `skip` where the path is null, as freopen's may be, or no plain path.
  [[nodiscard]] tree path(Snippet& code, tree skip) const;
  /// open's flags or the openmode as an int, with the bits that the opener always sets. A library's bits are translated
  /// into open's flags.
  [[nodiscard]] tree mode(Snippet& code) const;
  /// The directory that a relative path starts from: AT_FDCWD for all but openat.
  [[nodiscard]] tree dirfd() const;
};

/// `if (iosig_open_hint) iosig_open_hint(dirfd, path, flags, "signature");` and its likes. The symbol is weak, so that
/// the program also links and runs without libiosig.
void emit_hint(Snippet& code, const OpenCall& open, const Site& site);

/// The paper's mode: makes `path` a link to the site's destination, if the open is going to create a file.
/// False, and the reason is told: nothing was added, the open stays as it is.
[[nodiscard]] bool emit_link(Snippet& code, const OpenCall& open, const Site& site);

/// A function of libc with these parameters.
[[nodiscard]] tree libc_function(const char* name, tree result, std::initializer_list<tree> parameters);

/// The program's own declaration of the function that is called `name` in the assembler, or a new one.
[[nodiscard]] tree outside_function(const char* name, tree type, bool weak = false);
[[nodiscard]] tree char_pointer_type();
[[nodiscard]] tree string_constant(const std::string& text);
[[nodiscard]] tree int_constant(int value);

}  // namespace iosig::gcc
