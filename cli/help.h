// Layout of `--help`: lines that fit the terminal, and an example and the exit statuses for every verb.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace iosig::cli {

class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_usage(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
  std::string make_footer(const CLI::App* app) const override;
};

}  // namespace iosig::cli
