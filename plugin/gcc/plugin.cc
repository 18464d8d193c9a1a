// IOSIG's GCC plugin: applies the signature of a `#pragma sig` to the open that follows it.
//
//   #pragma sig persist random size-per-IO(64KB)      if (iosig_open_hint)
//   fd = open(path, O_CREAT | O_RDWR, 0644);     ->     iosig_open_hint(AT_FDCWD, path, O_CREAT | O_RDWR, "...");
//                                                     fd = open(path, O_CREAT | O_RDWR, 0644);
//
// sites.h describes how a pragma passes through the files of this directory. Source: IOSIG paper, section 6.1.
#include "gcc.h"
// after gcc.h
#include "associate.h"
#include "inject.h"
#include "iosig/base/text.h"
#include "iosig/format/opener_text.h"
#include "iosig/format/signature_text.h"
#include "openers.h"
#include "options.h"
#include "plugin-version.h"
#include "pragmas.h"
#include "sites.h"

extern "C" {
[[gnu::visibility("default")]] int plugin_is_GPL_compatible;
[[gnu::visibility("default")]] int plugin_init(plugin_name_args* plugin, plugin_gcc_version* version);
}

namespace iosig::gcc {
namespace {

void set_resolve(const char* plugin, const std::string& value) {
  if (value == "run" || value == "compile")
    options.resolve = value == "run" ? Resolve::run : Resolve::compile;
  else
    error("%<-fplugin-arg-%s-resolve=%s%>: expected %<run%> or %<compile%>", plugin, value.c_str());
}

void set_storage(const char* plugin, const std::string& value) {
  if (value.empty())
    error("%<-fplugin-arg-%s-storage%> needs a file, e.g. %<-fplugin-arg-%s-storage=storage.toml%>", plugin, plugin);
  else
    options.storage = value;
}

void set_policy(const char* plugin, const std::string& value) {
  if (const auto policy = parse_policy(value))
    options.policy = *policy;
  else
    error("%<-fplugin-arg-%s-policy=%s%>: expected %<job%> or %<paper%>", plugin, value.c_str());
}

void add_callee(const char* plugin, const std::string& value) {
  const ParsedOpener parsed = parse_sigopen(value);
  if (parsed.ok())
    add_opener(parsed.opener);
  else
    error("%<-fplugin-arg-%s-callee=%s%>: %s", plugin, value.c_str(), parsed.diagnostics.front().message.c_str());
}

/// Sets one option: `-fplugin-arg-iosig-storage=my.toml` has the key "storage" and the value "my.toml".
void read_option(const char* plugin, std::string_view key, const std::string& value) {
  constexpr std::string_view known[] = {"resolve", "storage", "policy", "callee", "verbose"};
  if (key == "resolve") return set_resolve(plugin, value);
  if (key == "storage") return set_storage(plugin, value);
  if (key == "policy") return set_policy(plugin, value);
  if (key == "callee") return add_callee(plugin, value);
  if (key == "verbose") {
    options.verbose = true;
    return;
  }
  const std::string hint = did_you_mean(key, known);
  warning(0, "unknown argument %<-fplugin-arg-%s-%s%> (known: resolve, storage, policy, callee, verbose)%s", plugin,
          std::string(key).c_str(), hint.c_str());
}

void read_options(const plugin_name_args& plugin) {
  for (int i = 0; i < plugin.argc; ++i) {
    const plugin_argument& argument = plugin.argv[i];
    read_option(plugin.base_name, argument.key, argument.value != nullptr ? argument.value : "");
  }
  // ccache sets this variable for the compilers that it starts.
  if (options.resolve == Resolve::compile && getenv("UNCACHED_ERR_FD") != nullptr)
    error(
        "ccache would keep destinations that are fixed while compiling, when the storage has long changed; set "
        "%<CCACHE_DISABLE=1%>, as %<iosig cc --resolve=compile%> does");
}

void register_callbacks(const plugin_name_args& plugin) {
  const auto on = [&](int event, plugin_callback_func callback) {
    register_callback(plugin.base_name, event, callback, nullptr);
  };
  on(PLUGIN_PRAGMAS, [](void*, void*) {
    // -E -fdirectives-only prints unknown pragmas but drops registered ones, so none are registered then.
    if (!(flag_preprocess_only && cpp_get_options(parse_in)->directives_only)) register_pragmas();
  });
  register_kept_trees(plugin.base_name);
  on(PLUGIN_PRE_GENERICIZE, [](void* function, void*) { associate_sites(static_cast<tree>(function)); });
  // At this point all functions are known, and -flto has not yet discarded parts of classes.
  on(PLUGIN_ALL_IPA_PASSES_START, [](void*, void*) { report_unused_sites(); });
  // The pass runs after the warnings, which then never refer to inserted code; and before OpenMP, sanitizers and
  // inlining, which treat inserted code like the program's own.
  register_pass_info pass{new_inject_pass(), "*warn_unused_result", 1, PASS_POS_INSERT_AFTER};
  register_callback(plugin.base_name, PLUGIN_PASS_MANAGER_SETUP, nullptr, &pass);
}

}  // namespace
}  // namespace iosig::gcc

int plugin_init(plugin_name_args* plugin, plugin_gcc_version* version) {
  static plugin_info info = {
      "iosig " IOSIG_VERSION,
      "-fplugin-arg-iosig-resolve=run|compile      when the mount point is chosen\n"
      "-fplugin-arg-iosig-storage=FILE             storage description for resolve=compile\n"
      "-fplugin-arg-iosig-policy=job|paper         policy of signatures that have none\n"
      "-fplugin-arg-iosig-callee=NAME:PATH[:MODE]  NAME opens a file; PATH, MODE: numbers of its arguments\n"
      "-fplugin-arg-iosig-verbose                  tell which call got which signature"};
  register_callback(plugin->base_name, PLUGIN_INFO, nullptr, &info);
  if (!plugin_default_version_check(version, &gcc_version)) {
    error("this IOSIG plugin was built for GCC %s and cannot be loaded by GCC %s; build IOSIG with this compiler",
          gcc_version.basever, version->basever);
    return 1;
  }
  if (c_register_pragma_with_expansion == nullptr) return 0;  // lto1, f951, ...: they have no pragmas
  iosig::gcc::read_options(*plugin);
  iosig::gcc::register_callbacks(*plugin);
  return 0;
}
