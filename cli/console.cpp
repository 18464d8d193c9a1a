#include "console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "iosig/base/files.h"

namespace iosig::cli {
namespace {

bool write_line(std::FILE* to, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fputc('\n', to) != EOF;
}

/// Columns on the screen: one per UTF-8 character, which holds for all that we print.
std::size_t width(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return columns;
}

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

std::string Table::text() const {
  std::vector<std::size_t> widths(header_.size(), 0);
  std::vector<bool> numeric(header_.size(), true);
  const auto measure = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  };
  measure(header_);
  for (const auto& row : rows_) {
    measure(row);
    for (std::size_t i = 0; i < row.size(); ++i)
      if (!row[i].empty() && row[i] != "-" && !is_number(row[i])) numeric[i] = false;
  }
  std::string all;
  const auto put = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - width(row[i]), ' ');
      if (i > 0) line += "  ";
      line += numeric[i] ? pad + row[i] : row[i] + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    all += line + '\n';
  };
  put(header_);
  for (const auto& row : rows_) put(row);
  if (!all.empty()) all.pop_back();
  return all;
}

void Console::say(std::string_view text) const {
  if (!write_line(stdout, text) && write_error_ == 0) write_error_ = errno;
}

void Console::say_json(std::string_view schema, const nlohmann::ordered_json& document) const {
  nlohmann::ordered_json whole = {{"schema", schema}};
  whole.update(document);
  // Paths are bytes: what is no UTF-8 is shown with U+FFFD rather than refused.
  say(whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Console::talk(std::string_view text) const { write_line(stderr, text); }

void Console::note(std::string_view text) const { write_line(stderr, fmt::format("iosig: note: {}", text)); }

int Console::fail(const Error& error) const {
  write_line(stderr, fmt::format("iosig: {}", error.message));
  return exit_status(error.kind);
}

Result<void> Console::flush() const {
  if (std::fflush(stdout) != 0 && write_error_ == 0) write_error_ = errno;
  if (write_error_ != 0) return system_failure("write to", "standard output", write_error_);
  if (std::ferror(stdout) != 0) return system_failure("write to", "standard output", EIO);  // by others than say()
  return {};
}

int Console::finish(int status) const {
  const auto written = flush();
  return written ? status : fail(written.error());
}

void Console::progress(std::string_view text) {
  if (::isatty(STDERR_FILENO) != 0) {
    const std::size_t now = width(text);
    std::fprintf(stderr, "\r%.*s%*s", static_cast<int>(text.size()), text.data(),
                 static_cast<int>(progress_width_ > now ? progress_width_ - now : 0), "");
    std::fflush(stderr);
    progress_width_ = now;
    return;
  }
  const std::string word(text.substr(0, text.find(':')));
  if (word != progress_word_) write_line(stderr, text);
  progress_word_ = word;
}

void Console::end_progress() {
  if (progress_width_ > 0) std::fprintf(stderr, "\r%*s\r", static_cast<int>(progress_width_), "");
  progress_width_ = 0;
  progress_word_.clear();
}

}  // namespace iosig::cli
