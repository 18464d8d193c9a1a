// Writes a container as it is told, for tests in Python: `write_container PATH` reads commands from standard input, one
// a line, and answers each with "ok" or the error when it is done.
//
//     open WRITER          any word names a writer
//     write WRITER OFFSET LENGTH LETTER
//     times WRITER COUNT OFFSET STRIDE LENGTH LETTER
//     sync WRITER          close WRITER          truncate WRITER SIZE
#include <iostream>
#include <map>
#include <sstream>

#include "iosig/container/admin/container.h"
#include "iosig/container/write/container_writer.h"

using namespace iosig;

namespace {

std::string answer(const Result<void>& result) { return result ? "ok" : result.error().message; }

Result<void> write(ContainerWriter& writer, std::int64_t offset, std::int64_t length, char letter) {
  const std::string text(static_cast<std::size_t>(length), letter);
  const auto done = writer.write(offset, std::as_bytes(std::span(text)));
  if (!done) return pass_on(done.error());
  if (*done != length) return fail(ErrorKind::infeasible, "{} of {} bytes", *done, length);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto directory = ContainerDirectory::open(argv[1]);
  if (!directory) {
    std::cerr << directory.error().message << '\n';
    return 3;
  }
  std::map<std::string, std::unique_ptr<ContainerWriter>> writers;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string verb, who;
    words >> verb >> who;
    auto& writer = writers[who];
    const auto number = [&] {
      std::int64_t value = 0;
      words >> value;
      return value;
    };
    Result<void> done{};
    if (verb == "open") {
      auto opened = ContainerWriter::open(*directory);
      if (opened)
        writer = *std::move(opened);
      else
        done = pass_on(opened.error());
    } else if (!writer) {
      done = fail(ErrorKind::usage, "no writer {}", who);
    } else if (verb == "write" || verb == "times") {
      const std::int64_t count = verb == "times" ? number() : 1, offset = number(),
                         stride = verb == "times" ? number() : 0, length = number();
      char letter = '?';
      words >> letter;
      for (std::int64_t n = 0; n < count && done; ++n) done = write(*writer, offset + n * stride, length, letter);
    } else if (verb == "sync") {
      done = writer->sync();
    } else if (verb == "close") {
      done = writer->close();
    } else if (verb == "truncate") {
      done = writer->truncate(number());
    } else {
      done = fail(ErrorKind::usage, "no command {}", verb);
    }
    std::cout << answer(done) << std::endl;
  }
  return 0;
}
