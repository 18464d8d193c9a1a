"""`iosig check`: what it finds, how it shows it, and what its exit status says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Iosig

GOOD = '#include <fcntl.h>\nint main(void) {\n#pragma sig temp\n  return open("x", O_RDONLY);\n}\n'
BAD = "#include <fcntl.h>\n#pragma sig persist size-per-OI(16MB)\nint fd;\n"
UNUSED = "int main(void) {\n#pragma sig persist\n  return 0;\n}\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "a.c"


def test_a_finding_is_shown_as_gcc_shows_it(iosig: Iosig, source: Path) -> None:
    source.write_text(BAD)
    done = iosig("check", source.name, cwd=source.parent, check=1)
    assert done.stdout.splitlines()[:4] == [
        "a.c:2:21: error: unknown parameter 'size-per-OI'; did you mean 'size-per-IO'?",
        "    2 | #pragma sig persist size-per-OI(16MB)",
        "      |                     ^~~~~~~~~~~",
        "      |                     size-per-IO",
    ]
    assert "1 error and 0 warnings in 1 file" in done.stderr


def test_columns_are_those_of_the_screen(iosig: Iosig, source: Path) -> None:
    source.write_text('\t/* ä */ _Pragma("sig tmp") int a;\n')
    first, line, caret = iosig("check", source.name, cwd=source.parent, check=1).stdout.splitlines()[:3]
    assert first.startswith("a.c:1:17: error: unknown parameter 'tmp'")
    assert line.index("_Pragma") == caret.index("^")


@pytest.mark.parametrize(
    ("text", "options", "status"),
    [(GOOD, [], 0), (GOOD, ["--strict"], 0), (UNUSED, [], 0), (UNUSED, ["--strict"], 1), (BAD, [], 1)],
)
def test_the_exit_status_tells_whether_there_is_something_to_mend(
    iosig: Iosig, source: Path, text: str, options: list[str], status: int
) -> None:
    source.write_text(text)
    done = iosig("check", *options, source, check=status)
    assert (done.stdout == "") == (text == GOOD)


def test_json_has_every_finding_with_its_place_and_its_replacement(iosig: Iosig, source: Path) -> None:
    source.write_text(BAD + "#pragma sigdef a temp\n#pragma sigdef a persist\n")
    document = iosig.json("check", source, check=1)
    assert document["schema"] == "iosig.check/1"
    assert (document["errors"], document["warnings"]) == (2, 0)
    first, second = document["findings"]
    assert (first["line"], first["column"], first["end_column"]) == (2, 21, 32)
    assert (first["rule"], first["severity"], first["replacement"]) == ("signature", "error", "size-per-IO")
    assert second["message"] == "signature 'a' is defined again, differently"
    assert [(note["line"], note["message"]) for note in second["notes"]] == [(4, "first defined here as 'temp'")]


def required_by_sarif(run: dict[str, Any]) -> None:
    """What SARIF 2.1.0's schema requires of the objects that we use, and what code scanning asks for besides."""
    driver = run["tool"]["driver"]
    assert driver["name"]
    assert driver["version"]
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(set(rules)) == len(rules)
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    for result in run["results"]:
        assert result["ruleId"] in rules
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        assert len(result["locations"]) == 1
        for location in result["locations"] + result.get("relatedLocations", []):
            place = location["physicalLocation"]
            assert " " not in place["artifactLocation"]["uri"]
            region = place["region"]
            assert region["startLine"] >= 1
            assert 1 <= region["startColumn"] <= region["endColumn"]
        assert all(location["message"]["text"] for location in result.get("relatedLocations", []))
        for fix in result.get("fixes", []):
            for change in fix["artifactChanges"]:
                assert change["artifactLocation"]["uri"]
                assert all(replacement["deletedRegion"] for replacement in change["replacements"])


def test_one_document_is_printed_not_two(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(BAD)
    assert "cannot be given together" in iosig("check", "--sarif", "--json", "a.c", cwd=tmp_path, check=2).stderr


def test_sarif_is_what_code_scanning_reads(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "a b.c").write_text(BAD + '/* ä */ _Pragma("sig global local") int a;\n' + UNUSED)
    document = json.loads(iosig("check", "--sarif", "a b.c", cwd=tmp_path, check=1).stdout)
    assert document["version"] == "2.1.0"
    [run] = document["runs"]
    required_by_sarif(run)
    results = run["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [
        ("signature", "error"),
        ("signature", "error"),
        ("association", "warning"),
    ]
    place = results[0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b.c"
    assert place["region"] == {"startLine": 2, "startColumn": 21, "endColumn": 32}
    [change] = results[0]["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"]["text"] == "size-per-IO"
    assert results[1]["locations"][0]["physicalLocation"]["region"]["startColumn"] == 9  # characters, not bytes


def test_included_files_are_read_where_told_and_their_findings_come_once(iosig: Iosig, tmp_path: Path) -> None:
    directory = tmp_path / "include"
    directory.mkdir()
    (directory / "sig.h").write_text("#pragma sigdef mine temp SIZE\n#pragma sigdef yours tmp\n")
    for name in ("a.c", "b.c"):
        (tmp_path / name).write_text(
            '#include "sig.h"\n#include "gone.h"\nint main(void) {\n#pragma sig mine\n  return creat("x", 1);\n}\n'
        )
    sources = [tmp_path / "a.c", tmp_path / "b.c"]
    done = iosig("check", *sources, "-I", directory, "-DSIZE=totalsize(1GB)", check=1)
    assert done.stdout.count("unknown parameter 'tmp'") == 1
    assert f"{directory}/sig.h:2:22: error" in done.stdout
    assert "1 included file is not found" in done.stderr
    assert "gone.h" in done.stderr
    assert "unknown parameter 'mine'" in iosig("check", *sources, check=1).stdout


def test_a_signature_that_no_mount_point_suits_is_a_warning(iosig: Iosig, source: Path) -> None:
    storage = source.parent / "storage.toml"
    storage.write_text(
        'schema = "iosig.storage/1"\n[[mount_point]]\npath = "/nowhere"\ndevice = "a"\n'
        '[[device]]\nname = "a"\nkind = "ssd"\ncapacity = "1GB"\n'
    )
    uses = "".join(f'#pragma sig {text}\n  creat("x", 1);\n' for text in ("persist", "archive", "totalsize(2GB)"))
    source.write_text(f"int main(void) {{\n{uses}}}\n")
    assert iosig("check", source).stdout == ""
    findings = iosig.json("check", source, "--storage", storage)["findings"]
    assert [(f["line"], f["rule"], f["message"]) for f in findings] == [
        (4, "storage", "no mount point suits 'archive': the file is not redirected"),
        (6, "storage", "no mount point suits 'totalsize(2GB)': the file is not redirected"),
    ]
    assert findings[0]["notes"][0]["message"] == "/nowhere: not labelled archive"


def test_functions_of_the_user_are_openers_when_they_are_declared(iosig: Iosig, source: Path) -> None:
    source.write_text('int main(void) {\n#pragma sig temp\n  return my_open(1, "x");\n}\n')
    assert "is not followed by a statement" in iosig("check", source).stdout
    assert iosig("check", source, "--callee", "my_open:2").stdout == ""
    assert "my_open:0" in iosig("check", source, "--callee", "my_open:0", check=2).stderr


def test_rules_and_storage_descriptions_are_checked_by_their_schema(iosig: Iosig, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "*"\nsig = "persist"\n')
    assert iosig("check", rules).stdout == ""
    rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "*"\nsig = "persit"\n')
    assert iosig("check", rules.name, cwd=tmp_path, check=1).stdout.startswith(
        "rules.toml:4:7: error: unknown parameter 'persit'; did you mean 'persist'?\n"
    )
    rules.write_text('schema = "iosig.rules/1"\n[rule]\npath = "*"\nsig = "persist"\n')
    assert "rules.toml:2:1: error: expected [[rule]]" in iosig("check", rules, check=1).stdout
    rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = \n')
    assert iosig("check", rules.name, cwd=tmp_path, check=1).stdout.startswith("rules.toml:3:")
    unread = iosig("check", "none.toml", cwd=tmp_path, check=None).stderr
    assert "0 errors and 0 warnings in 0 files; 1 file could not be read" in unread
    storage = tmp_path / "storage.toml"
    storage.write_text('schema = "iosig.storage/1"\n[[device]]\nname = "a"\nkind = "ssd"\nkint = 3\n')
    assert "'kint'" in iosig("check", storage, check=1).stdout


def test_what_cannot_be_read_is_told_and_the_rest_is_checked(iosig: Iosig, source: Path) -> None:
    source.write_text(BAD)
    done = iosig("check", source.parent / "gone.c", source, check=4)
    assert "gone.c" in done.stderr
    assert "unknown parameter" in done.stdout
    assert "FILE is required" in iosig("check", check=2).stderr


def test_the_language_follows_from_the_name_or_is_told(iosig: Iosig, tmp_path: Path) -> None:
    number = "#pragma sigdef large totalsize(1EB)\n"
    for name, status in (("a.c", 0), ("a.h", 0), ("a.cc", 1), ("a.cpp", 1), ("a.hpp", 1)):
        (tmp_path / name).write_text(number)
        iosig("check", tmp_path / name, check=status)
    assert "write it in quotes" in iosig("check", "-x", "c++", tmp_path / "a.h", check=1).stdout


def test_a_stream_that_may_fill_its_mount_point_is_told_once(iosig: Iosig, tmp_path: Path) -> None:
    (tmp_path / "big").mkdir()
    storage = tmp_path / "storage.toml"
    storage.write_text(
        'schema = "iosig.storage/1"\n'
        f'[[mount_point]]\npath = "{tmp_path}"\ndevice = "fast"\nfree = "2GB"\n'
        f'[[mount_point]]\npath = "{tmp_path}/big"\ndevice = "slow"\nfree = "2TB"\n'
        '[[device]]\nname = "fast"\nkind = "ssd"\n[[device]]\nname = "slow"\nkind = "hdd"\n'
    )
    rules = tmp_path / "rules.toml"
    sized, unsized = "random totalsize(1GB)", "random"
    for signatures, lines in (([sized], []), ([sized, unsized, unsized], [7])):
        rules.write_text(
            'schema = "iosig.rules/1"\n'
            + "".join(f'[[rule]]\npath = "{n}"\nsig = "{each}"\n' for n, each in enumerate(signatures))
        )
        findings = iosig.json("check", rules, "--storage", storage)["findings"]
        assert [(each["line"], each["rule"]) for each in findings] == [(line, "room") for line in lines]
    assert f"beyond 2 GB the program gets 'no space left on device' on {tmp_path}" in findings[0]["message"]
    assert f"although {tmp_path}/big has 2 TB; declare totalsize(...)" in findings[0]["message"]
