#include <doctest/doctest.h>

#include <random>

#include "iosig/check/fortran_text.h"

using namespace iosig;

namespace {

std::string findings_in(std::string_view source) {
  std::string text;
  for (const SourceFinding& found : check_fortran("main.f90", source).findings)
    text += fmt::format("{}:{} {}\n", found.at.line, found.at.column, found.message);
  return text;
}

}  // namespace

TEST_CASE("fortran: a directive that a condition leaves out is not there") {
  const auto names = [](const std::vector<std::pair<std::string, std::string>>& definitions) {
    std::string text;
    for (const SourceDirective& found : check_fortran("main.F90",
                                                      "#define LEVEL 2 /* it's a comment */\n"
                                                      "#ifdef PLOT\n"
                                                      "  !$sigio output plot &\n"
                                                      "  !$sigio   status(e)\n"
                                                      "#else\n"
                                                      "  !$sigio output none\n"
                                                      "#endif\n"
                                                      "  print *, 'it''s'\n"
                                                      "#if LEVEL > 1 && \\\n"
                                                      "  !defined(SMALL)\n"
                                                      "  !$sigio output ckpt\n"
                                                      "#endif\n",
                                                      definitions)
                                            .directives)
      text += fmt::format("{}:{} ", found.at.line, found.directive.name);
    return text;
  };
  CHECK(names({}) == "6:none 11:ckpt ");
  CHECK(names({{"PLOT", "1"}}) == "3:plot 11:ckpt ");
  CHECK(names({{"SMALL", ""}}) == "6:none ");
}

TEST_CASE("fortran: a directive goes on over lines, each with its sentinel, and ends before a comment") {
  const CheckedSource checked = check_fortran("main.f90",
                                              "program p\n"
                                              "  !$SIGIO dims ckpt z(n(1) - 1) & ! the axes\n"
                                              "  !$sigio& y(ny)\n"
                                              "!$sigio attr ckpt title('it''s! one') ! comment\n"
                                              "!$sigionot a directive\n"
                                              "!$omp parallel\n"
                                              "end program\n");
  CHECK(checked.findings.empty());
  REQUIRE(checked.directives.size() == 2);
  const SourceDirective& dims = checked.directives[0];
  CHECK(dims.at.line == 2);
  CHECK(dims.last_line == 3);
  REQUIRE(dims.directive.clauses.size() == 2);
  CHECK(dims.directive.clauses[0].entries[0].values[0] == "n(1) - 1");
  CHECK(dims.clauses[1].line == 3);
  CHECK(dims.clauses[1].column == 12);
  CHECK(checked.directives[1].last_line == 4);
}

TEST_CASE("fortran: a mistake has its place, also in a line that goes on") {
  CHECK(findings_in("!$sigio file ckpt path(p) &\n  !$sigio  levl(mpiio)\n") ==
        "2:12 'file' has no clause 'levl'; expected path, level, comm, access, decomp, hint\n");
  CHECK(findings_in("x = 1\n  !$sigio output ckpt &\ny = 1\n") ==
        "2:3 the directive ends with '&', but the next line does not begin with '!$sigio'\n");
  CHECK(findings_in("!$sigio output ckpt &").size() > 0);
  CHECK(findings_in("!$sigio\n") == "1:8 expected a directive: file, dims, attr, decomp, dataset, output, input\n");
}

TEST_CASE("fortran: a template that opens a file by itself is warned of") {
  CHECK(findings_in("open (10, file=f)\n").empty());
  CHECK(findings_in("!$sigio output ckpt\nx%open(1); reopen(2); call MPI_File_open(c)\n  OPEN (10) ! open(3)\n") ==
        "2:28 'mpi_file_open' opens a file in a template; the I/O of a template is what its directives say\n"
        "3:3 'open' opens a file in a template; the I/O of a template is what its directives say\n");
}

TEST_CASE("fortran: the form follows from the name") {
  CHECK(is_free_form("a/b.F90"));
  CHECK(is_free_form("b.f08"));
  CHECK_FALSE(is_free_form("b.f"));
  CHECK(is_fixed_form("b.FOR"));
  CHECK_FALSE(is_fixed_form("f"));
}

TEST_CASE("fortran: no text makes the checker fail, and each place is in its line") {
  const std::vector<std::string> pieces{
      "!$sigio ", "!$sigio", "file f path(", "dims f z(1)", "output f", "&", "\n", "\r\n",
      "!",        "'",       "\"",           "(",           ")",        ":", "=",  ",",
      " ",        "open(",   "attr f a(1)",  "\t",          "x"};
  std::mt19937 random(7);
  std::size_t directives = 0, findings = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string source;
    for (int i = 0; i < 12; ++i) source += pieces[random() % pieces.size()];
    const CheckedSource checked = check_fortran("main.f90", source);
    directives += checked.directives.size();
    findings += checked.findings.size();
    for (const SourceFinding& found : checked.findings) {
      CHECK(found.at.column >= 1);
      CHECK(found.at.column <= found.at.end_column);
      CHECK(found.at.column <= found.at.line_text.size() + 1);
    }
    for (const SourceDirective& found : checked.directives) CHECK(found.last_line >= found.at.line);
  }
  CHECK(directives > 10);
  CHECK(findings > 500);
}
