// How `--help` looks: lines that fit, and for every verb an example and what its exit status says.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace iosig::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace iosig::cli
