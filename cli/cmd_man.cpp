// `iosig man`: generates the manual pages from the definitions of the verbs. Hidden from the help; the build runs it
// and installs the pages.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "commands.h"
#include "iosig/base/files.h"
#include "iosig/format/signature_text.h"
#include "usage.h"

namespace iosig::cli {
namespace {

std::string roff(std::string_view text) {
  std::string escaped;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
    at_line_start = c == '\n';
  }
  return escaped;
}

std::string synopsis(const std::string& name, const CLI::App& app) {
  std::string line = fmt::format(".B {}\n", roff(name));
  if (!shown_verbs(app).empty()) line += ".I VERB\n";
  line += "[\\fIoptions\\fR]";
  for (const CLI::Option* option : app.get_options()) {
    if (option->nonpositional()) continue;
    const std::string type = option->get_type_name();  // TEXT and TEXT:{one,other} are less clear than the name
    const std::string argument =
        fmt::format("\\fI{}\\fR", roff(type.starts_with("TEXT") ? option->get_name(true) : type));
    line += option->get_required() ? " " + argument : fmt::format(" [{}]", argument);
  }
  return line + "\n";
}

std::string options_of(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_size() == 0 ? "" : " " + option->get_type_name();
    const std::string name = option->nonpositional() ? option->get_name(false, true) + type : option->get_name(true);
    text += fmt::format(".TP\n.B {}\n{}\n", roff(name), roff(option->get_description()));
  }
  return text;
}

void describe(const std::string& name, const CLI::App& app, std::string& page) {
  page += fmt::format(".SS {}\n{}.\n.PP\n{}{}", roff(name), roff(app.get_description()), synopsis(name, app),
                      options_of(app));
  if (!app.get_footer().empty()) page += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(app.get_footer()));
}

/// Returns the page of the verb `app`, or of the whole command if `is_root`. `name` is e.g. "iosig-storage".
std::string man_page(const std::string& name, const CLI::App& app, bool is_root) {
  const std::string command = is_root ? "iosig" : "iosig " + app.get_name();
  std::string page =
      fmt::format(".TH {} 1 \"\" \"iosig {}\" \"IOSIG manual\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n{}", roff(name),
                  IOSIG_VERSION, roff(name), roff(app.get_description()), synopsis(command, app));
  const std::string footer = app.get_footer();
  const std::size_t examples = is_root ? 0 : std::min(footer.find("Example:"), footer.size());
  if (examples > 0) page += fmt::format(".SH DESCRIPTION\n{}\n", roff(footer.substr(0, examples)));
  page += fmt::format(".SH OPTIONS\n{}", options_of(app));
  if (is_root) {
    page += ".SH VERBS\n";
    for (const CLI::App* verb : shown_verbs(app))
      page += fmt::format(".TP\n.BR iosig\\-{} (1)\n{}\n", roff(verb->get_name()), roff(verb->get_description()));
    page += ".SH SIGNATURES\nParameters are separated by blanks; sizes are powers of 1024, times are ms s min h d y.\n";
    for (const ParameterInfo& parameter : signature_parameters())
      page += fmt::format(".TP\n.B {}\n{}\n",
                          roff(parameter.example.empty() ? std::string(parameter.name)
                                                         : fmt::format("{}({})", parameter.name, parameter.example)),
                          roff(parameter.meaning));
    page +=
        ".SH FILES\n.TP\n.I ~/.config/iosig/storage.toml\nthe storage description that iosig storage probe writes\n"
        ".TP\n.I ~/.config/iosig/storage.d/HOSTS.toml\nthat of one host, or of the hosts that a pattern covers: it "
        "goes before storage.toml there\n"
        ".TP\n.I /etc/iosig/storage.toml\nthe machine's: its mount points are added to the user's, its limits hold for "
        "everybody\n"
        ".TP\n.I ~/.local/state/iosig/journal\nwhat was redirected\n"
        ".SH ENVIRONMENT\n.TP\n.B IOSIG_STORAGE\nthe storage description to use\n.TP\n.B IOSIG_POLICY\njob or paper: "
        "how mount points are chosen\n.TP\n.B IOSIG_STATE\nthe state "
        "directory\n"
        ".TP\n.B IOSIG_VERBOSE\n1: annotated programs explain each decision on stderr\n"
        ".TP\n.B IOSIG_DISABLE\n1: annotated programs redirect nothing\n"
        ".TP\n.B COLUMNS\nthe width of tables, instead of the terminal's\n"
        ".TP\n.B NO_COLOR\nset: no colours, as with TERM=dumb\n";
  } else if (const auto verbs = shown_verbs(app); !verbs.empty()) {
    page += ".SH VERBS\n";
    for (const CLI::App* verb : verbs) describe(command + " " + verb->get_name(), *verb, page);
  }
  page +=
      ".SH EXIT STATUS\n0 yes; 1 a sound \"no\" (nothing admissible, a verification failed); 2 wrong usage; 3 bad "
      "input; 4 the "
      "system refused.\n";
  page += fmt::format(".SH EXAMPLES\n.nf\n{}\n.fi\n", roff(footer.substr(examples)));
  return page;
}

int run_man(const CLI::App& root, const std::string& directory, Console& console) {
  const auto write = [&](const std::string& name, const CLI::App& app, bool is_root) {
    return replace_file(fmt::format("{}/{}.1", directory, name), man_page(name, app, is_root));
  };
  if (const auto written = write("iosig", root, true); !written) return console.fail(written.error());
  for (const CLI::App* verb : shown_verbs(root))
    if (const auto written = write("iosig-" + verb->get_name(), *verb, false); !written)
      return console.fail(written.error());
  return yes;
}

}  // namespace

void add_man(Verb app, Action& action) {
  const Verb verb = app.add_verb("man", "Write the manual pages into a directory").group("");
  const auto directory = std::make_shared<std::string>();
  verb.add_option("DIRECTORY", *directory, "where to write iosig.1, iosig-choose.1, ...").required();
  verb.footer("Example: iosig man share/man/man1");
  verb.when_chosen(action, "", [=](Console& console) { return run_man(app.app(), *directory, console); });
}

}  // namespace iosig::cli
