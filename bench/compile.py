"""What the plugin costs a compilation (`make bench`): a generated file of 5,000 lines, in C and in C++.

The same compiler works on the same file without the plugin and with it, in turn, and the least processor time of each
counts: what else the machine does only adds. Without the plugin the pragmas are ignored, as by any other compiler.
Every function opens a file; of the opens all have a pragma, or ten, or none.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import tempfile
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent / "build"
LINES = 5000
BLOCK = """
/* block {n} */
int work_{n}(const char *path, const int *values, int count) {{
  int i, sum = 0;
  char name[256];
  snprintf(name, sizeof name, "%s.{n}", path);
{pragma}  int fd = open(name, O_CREAT | O_WRONLY, 0644);
  if (fd < 0) return -1;
  for (i = 0; i < count; ++i) {{
    if (values[i] % 3 == 0) sum += values[i] * {n};
    else if (values[i] % 3 == 1) sum -= values[i];
    else sum ^= i;
  }}
  if (write(fd, values, (size_t)count * sizeof *values) < 0) sum = -1;
  switch (sum % 4) {{
    case 0: sum += {n}; break;
    case 1: sum -= {n}; break;
    default: sum = sum < 0 ? -sum : sum; break;
  }}
  close(fd);
  return sum;
}}
"""
CXX_BLOCK = """
// block {n}
class Writer{n} {{
 public:
  explicit Writer{n}(std::string path) : path_(std::move(path)) {{}}
  bool write(const std::vector<double> &values) {{
    std::map<int, double> sums;
    for (std::size_t i = 0; i < values.size(); ++i) sums[static_cast<int>(i % {n} + 1)] += values[i];
{pragma}    std::ofstream out(path_ + ".{n}", std::ios::binary);
    if (!out) return false;
    for (const auto &[key, sum] : sums) out << key << ' ' << sum << '\\n';
    std::vector<double> sorted(values);
    std::sort(sorted.begin(), sorted.end(), [](double a, double b) {{ return a > b; }});
    out.write(reinterpret_cast<const char *>(sorted.data()),
              static_cast<std::streamsize>(sorted.size() * sizeof(double)));
    return out.good();
  }}

 private:
  std::string path_;
}};
bool work_{n}(const std::vector<double> &values) {{ return Writer{n}("out").write(values); }}
"""
HEADERS = {"c": "fcntl.h stdio.h unistd.h", "c++": "algorithm fstream map string utility vector"}


def program(language: str, pragmas: int | None) -> str:
    """A file of LINES lines, in which every block opens one file; `pragmas` of them are annotated, None: all."""
    block = BLOCK if language == "c" else CXX_BLOCK
    source = "".join(f"#include <{header}>\n" for header in HEADERS[language].split())
    number = 0
    while source.count("\n") + block.count("\n") <= LINES:
        number += 1
        is_annotated = pragmas is None or number <= pragmas
        pragma = f"#pragma sig temp random totalsize({number}MB)\n" if is_annotated else "\n"
        source += block.format(n=number, pragma=pragma)
    return source + "\n" * (LINES - source.count("\n"))


def processor_s(command: list[str]) -> float:
    """Processor time of a command and its children, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iosig", type=Path, default=BUILD / "bin" / "iosig", help="the command to ask for its flags")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    plugin = subprocess.run(
        [options.iosig, "cc", "--cflags"], check=True, capture_output=True, text=True
    ).stdout.split()

    print(f"compiling {LINES} lines, least processor time of {options.rounds} rounds")
    print(f"{'':10}{'pragmas':>8}{'without':>10}{'with':>10}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "program"
        for language, driver in (("c", "gcc"), ("c++", "g++")):
            for level, pragmas in (("-O0", 10), ("-O2", 0), ("-O2", 10), ("-O2", None)):
                text = program(language, pragmas)
                source.write_text(text)
                command = [driver, level, "-w", "-x", language, "-c", str(source), "-o", "/dev/null"]
                plain_s = with_s = float("inf")
                for _ in range(options.rounds):
                    plain_s = min(plain_s, processor_s(command))
                    with_s = min(with_s, processor_s(command + plugin))
                label, count = f"{language} {level}", text.count("#pragma sig")
                print(f"{label:10}{count:>8}{plain_s:>8.3f} s{with_s:>8.3f} s{with_s / plain_s:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
