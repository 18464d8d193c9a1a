#include <doctest/doctest.h>

#include "iosig/check/include_lines.h"

using namespace iosig;

TEST_CASE("include lines: the last include before the first braces counts, outside of conditionals and comments") {
  CHECK(last_include_line("") == 0);
  CHECK(last_include_line("int x;\n#include <a.h>\n") == 2);
  CHECK(last_include_line(
            "#define _GNU_SOURCE\n#include <a.h>\n\n#include \"b.h\" /* c */\nint f() {}\n#include <late>\n") == 4);
  CHECK(last_include_line("#include <a.h>\n/*\n#include <b.h>\n*/\n// #include <c.h>\n") == 1);
  CHECK(last_include_line("#include <a.h>\n#ifdef X\n#include <b.h>\n#endif\n") == 1);
  CHECK(last_include_line("#if 1\n#if 2\n#endif\n#else\n#include <b.h>\n#endif\n#include <a.h>\n") == 7);
  CHECK(last_include_line("#include \\\n<a.h>\n#include") == 3);
  CHECK(last_include_line("#endif\n#include <a.h>") == 0);
}
