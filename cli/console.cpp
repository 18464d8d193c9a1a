#include "console.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "iosig/base/files.h"
#include "iosig/base/json_text.h"
#include "iosig/base/text.h"
#include "iosig/base/units.h"

namespace iosig::cli {
namespace {

constexpr std::size_t max_said_bytes = 1 << 16;
constexpr std::size_t min_path_columns = 16;
constexpr double redraw_s = 0.1, log_interval_s = 3;
constexpr const char *bold = "1", *red = "31", *yellow = "33";

std::string painted(std::string_view text, const char* colour, const Screen& screen) {
  return screen.has_colours ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : std::string(text);
}

/// Writes all of `text`. Returns 0 or errno.
int write_whole(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

/// Returns the number of screen columns: one per UTF-8 character, which is correct for all text that IOSIG prints.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, starts_character));
}

/// Shortens `text` to at most `columns`, with an ellipsis in place of its middle.
std::string shortened(std::string_view text, const Screen& screen, std::size_t columns) {
  const std::string_view ellipsis = screen.is_utf8 ? "…" : "...";
  std::vector<std::size_t> characters;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (starts_character(text[i])) characters.push_back(i);
  if (characters.size() <= columns || columns < min_path_columns) return std::string(text);
  const std::size_t kept = columns - width(ellipsis), head = kept / 2, tail = kept - head;
  return fmt::format("{}{}{}", text.substr(0, characters[head]), ellipsis,
                     text.substr(characters[characters.size() - tail]));
}

/// Returns the text that blanks a line of so many columns.
std::string erased(std::size_t columns) { return columns == 0 ? "" : fmt::format("\r{}\r", std::string(columns, ' ')); }

double steady_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool says_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string text(value);
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

bool is_path(std::string_view cell) { return cell.starts_with('/'); }

bool is_number(std::string_view cell) { return !cell.empty() && cell.front() >= '0' && cell.front() <= '9'; }

}  // namespace

void open_missing_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int exit_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::infeasible: return no;
    case ErrorKind::usage: return wrong_usage;
    case ErrorKind::bad_input: return bad_input;
    case ErrorKind::system: return system_refused;
  }
  return system_refused;
}

Screen screen_of(int fd) {
  Screen screen;
  screen.is_terminal = ::isatty(fd) != 0;
  const auto value = [](const char* variable) {
    const char* const text = std::getenv(variable);
    return std::string_view(text != nullptr ? text : "");
  };
  screen.is_utf8 = says_utf8();
  winsize size{};
  if (screen.is_terminal && ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    screen.columns = size.ws_col;
    screen.rows = size.ws_row;
  }
  if (const auto columns = parse_count<std::size_t>(value("COLUMNS")); columns && *columns > 0)
    screen.columns = *columns;
  const std::string_view terminal = value("TERM");
  screen.has_colours = screen.is_terminal && value("NO_COLOR").empty() && !terminal.empty() && terminal != "dumb";
  return screen;
}

std::string Table::text(const Screen& screen) const {
  std::vector<std::size_t> widths(header_.size(), 0);
  std::vector<bool> numeric(header_.size(), true);
  std::vector<std::size_t> least(header_.size(), min_path_columns);  // minimum width of a column with shortened paths
  const auto measure = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width(row[i]));
      if (!is_path(row[i])) least[i] = std::max(least[i], width(row[i]));
    }
  };
  measure(header_);
  for (const auto& row : rows_) {
    measure(row);
    for (std::size_t i = 0; i < row.size(); ++i)
      if (!row[i].empty() && row[i] != "-" && !is_number(row[i])) numeric[i] = false;
  }
  for (std::size_t all = 2 * (widths.size() - 1) + std::accumulate(widths.begin(), widths.end(), std::size_t{0});
       all > screen.columns; --all) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (widths[i] > least[i] && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
    if (widest == nullptr) break;
    --*widest;
  }
  const auto line_of = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = shortened(row[i], screen, widths[i]), pad(widths[i] - width(cell), ' ');
      if (i > 0) line += "  ";
      line += numeric[i] ? pad + cell : cell + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  };
  std::string text = painted(line_of(header_), bold, screen);
  for (const auto& row : rows_) text += '\n' + line_of(row);
  return text;
}

void Console::say(std::string_view text) const {
  if (said_.size() + text.size() >= max_said_bytes) (void)flush();
  said_ += text;
  said_ += '\n';
  static const bool is_terminal = ::isatty(STDOUT_FILENO) != 0;  // checked once: a verb may print a million lines
  if (said_.size() >= max_said_bytes || is_terminal) (void)flush();
}

void Console::say(const Table& table) const { say(table.text(screen_of(STDOUT_FILENO))); }

void Console::say_json(std::string_view schema, const nlohmann::ordered_json& document) const {
  nlohmann::ordered_json whole = {{"schema", schema}};
  whole.update(document);
  // Paths are arbitrary bytes: invalid UTF-8 is shown as U+FFFD and not refused.
  say(json_page(whole));
}

void Console::to_stderr(std::string_view line) const {
  (void)flush();
  (void)write_whole(STDERR_FILENO, fmt::format("{}{}\n", erased(std::exchange(progress_width_, 0)), line));
}

void Console::talk(std::string_view text) const { to_stderr(text); }

void Console::note(std::string_view text) const {
  to_stderr(fmt::format("{} {}", painted("iosig: note:", yellow, screen_of(STDERR_FILENO)), text));
}

int Console::fail(const Error& error) const {
  to_stderr(fmt::format("{} {}", painted("iosig:", red, screen_of(STDERR_FILENO)), error.message));
  return exit_status(error.kind);
}

Result<void> Console::flush() const {
  if (const int failure = write_whole(STDOUT_FILENO, std::exchange(said_, {})); failure != 0 && write_error_ == 0)
    write_error_ = failure;
  if (write_error_ != 0) return system_failure("write to", "standard output", write_error_);
  return {};
}

int Console::finish(int status) const {
  const auto written = flush();
  return written ? status : fail(written.error());
}

bool Console::begin_stage(std::string_view stage) {
  if (stage == stage_) return false;
  stage_ = stage;
  stage_began_s_ = shown_s_ = steady_s();
  return true;
}

void Console::show_progress(std::string_view text, bool at_once) {
  const Screen screen = screen_of(STDERR_FILENO);
  const double now_s = steady_s();
  if (!at_once && now_s - shown_s_ < (screen.is_terminal ? redraw_s : log_interval_s)) return;
  shown_s_ = now_s;
  if (!screen.is_terminal) return to_stderr(text);
  const std::string line = shortened(text, screen, screen.columns - 1);
  const std::size_t columns = width(line);
  const std::string pad(progress_width_ > columns ? progress_width_ - columns : 0, ' ');
  (void)write_whole(STDERR_FILENO, fmt::format("\r{}{}", line, pad));
  progress_width_ = columns;
}

void Console::progress(const Progress& progress) {
  if (begin_stage(progress.what)) stage_began_done_ = progress.done;
  const auto amount = [&](double of) {
    return progress.unit.empty() ? about_bytes(of) : fmt::format("{:.0f} {}", of, progress.unit);
  };
  std::string text = fmt::format("{}: {}", progress.what, amount(progress.done));
  if (progress.total > 0)
    text +=
        fmt::format(" of {} ({:.0f} %)", amount(progress.total), 100 * std::min(1.0, progress.done / progress.total));
  const double rate_per_s = (progress.done - stage_began_done_) / (steady_s() - stage_began_s_);
  if (std::isfinite(rate_per_s) && rate_per_s > 0) {
    text += fmt::format(", {}/s", amount(rate_per_s));
    if (progress.total > progress.done)
      text += fmt::format(", {} left", about_seconds((progress.total - progress.done) / rate_per_s));
  }
  show_progress(text, false);
}

void Console::progress(std::string_view text) { show_progress(text, begin_stage(text.substr(0, text.find(':')))); }

void Console::end_progress() {
  if (progress_width_ > 0) (void)write_whole(STDERR_FILENO, erased(std::exchange(progress_width_, 0)));
  stage_.clear();
}

}  // namespace iosig::cli
