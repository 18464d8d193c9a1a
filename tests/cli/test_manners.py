"""How the command behaves towards a person and a shell: wrong calls, exit statuses, tables, colours, progress, logs."""

from __future__ import annotations

import itertools
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import Iosig
from redirecting import World
from terminal import run_on_terminal

RED, YELLOW, BOLD, PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[1m", "\x1b[0m"


def on_terminal(
    iosig: Iosig, *words: object, columns: int = 80, env: dict[str, str] | None = None, before: tuple[str, ...] = ()
) -> str:
    """What a terminal of so many columns gets of stdout and stderr; `before` the command: a program that runs it."""
    return run_on_terminal([*before, iosig.binary, *words], iosig.env | {"TERM": "xterm"} | (env or {}), columns)


# ---- wrong calls


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("prepar", "x"), "unknown command 'prepar'. Did you mean 'prepare'? See 'iosig --help'"),
        (("xyzzy",), "unknown command 'xyzzy'; see 'iosig --help'"),
        (("cc", "--policy", "papper", "--", "gcc"), "--policy 'papper': expected job or paper; see 'iosig cc --help'"),
        (("container", "lss", "x"), "unknown command 'lss'. Did you mean 'ls'? See 'iosig container --help'"),
        (("pattern", "detct"), "unknown command 'detct'. Did you mean 'detect'? See 'iosig pattern --help'"),
        (("storage", "lst"), "unknown command 'lst'. Did you mean 'list'? See 'iosig storage --help'"),
        (("reliability", "mtdl"), "unknown command 'mtdl'. Did you mean 'mttdl'? See 'iosig reliability --help'"),
        (("storage",), "a command is required: probe, list, show; see 'iosig storage --help'"),
        (("gc", "--dryrun"), "unknown option '--dryrun'. Did you mean '--dry-run'? See 'iosig gc --help'"),
        (("gc", "--dryrun=yes"), "unknown option '--dryrun'. Did you mean '--dry-run'? See 'iosig gc --help'"),
        (("gc", "-json"), "unknown option '-json'. Did you mean '--json'? See 'iosig gc --help'"),
        (("--dry-run", "gc"), "unknown option '--dry-run'; see 'iosig --help'"),
        (("gc", "--frobnicate"), "unknown option '--frobnicate'; see 'iosig gc --help'"),
        (("check", "--strct"), "unknown option '--strct'. Did you mean '--strict'? See 'iosig check --help'"),
        (("status", "x"), "unexpected argument 'x': expected none; see 'iosig status --help'"),
        (("storage", "show", "a", "b"),
         "unexpected argument 'b': expected only MOUNTPOINT; see 'iosig storage show --help'"),
        (("unmount",), "MOUNTPOINT is required: where `iosig mount` put it; see 'iosig unmount --help'"),
        (("gc", "--older-than"),
         "--older-than needs a value: only data unchanged for this long (default 1d); 0s: everything; "
         "see 'iosig gc --help'"),
        (("storage", "list", "--storage", "a", "--storage", "b"),
         "--storage is given 2 times: expected once; see 'iosig storage list --help'"),
        (("gc", "--dry-run=perhaps"), "--dry-run takes no value; see 'iosig gc --help'"),
        (("container", "create", "--index", "patern", "x"),
         "--index 'patern': expected pattern or traditional; see 'iosig container create --help'"),
        (("completion", "csh"), "SHELL 'csh': expected bash, zsh or fish; see 'iosig completion --help'"),
        (("mount", "--threads", "many", "a", "b"),
         "--threads 'many': expected a whole number from 1 to 1024; see 'iosig mount --help'"),
        (("mount", "--threads", "0", "a", "b"),
         "--threads '0': expected a whole number from 1 to 1024; see 'iosig mount --help'"),
        (("mount", "--cache-seconds", "-1", "a", "b"),
         "--cache-seconds '-1': expected a number from 0 to 86400; see 'iosig mount --help'"),
        (("reliability", "simulate", "--precision", "fine"),
         "--precision 'fine': expected a number; see 'iosig reliability simulate --help'"),
        (("check", "--sarif", "--json", "x.c"),
         "--sarif and --json cannot be given together; see 'iosig check --help'"),
        (("choose", "--presets", "temp"),
         "SIGNATURE and --presets cannot be given together; see 'iosig choose --help'"),
        (("choose", "x", "--storage", ""),
         "--storage is empty: give it a value or leave it out; see 'iosig choose --help'"),
    ],
)  # fmt: skip
def test_a_wrong_call_is_told_in_one_plain_sentence(iosig: Iosig, words: tuple[str, ...], message: str) -> None:
    done = iosig(*words, check=2)
    assert done.stderr == f"iosig: {message}\n" and done.stdout == ""


def test_a_call_of_nothing_names_the_commands(iosig: Iosig) -> None:
    said = iosig(check=2).stderr
    assert said.startswith("iosig: a command is required: storage, cc, ") and said.endswith("; see 'iosig --help'\n")


# ---- iosig run


def test_a_program_that_cannot_be_run_has_the_status_that_shells_give_it(iosig: Iosig, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for program, status in (("no-such-program", 127), (tmp_path / "absent", 127), (plain, 126), (tmp_path, 126)):
        done = iosig("run", "--", program, check=status)
        assert done.stderr.startswith(f"iosig: cannot run '{program}': ") and done.stderr.count("\n") == 1


# ---- tables


def test_a_table_that_is_too_wide_shortens_its_widest_paths_in_the_middle(world: World) -> None:
    path = world.work / ("long" * 40) / "name.out"
    path.parent.mkdir()
    world.iosig("prepare", path, "temp random")
    whole = world.iosig("status").stdout
    assert str(path) in whole  # a pipe has no width
    rows = on_terminal(world.iosig, "status", columns=120, env={"NO_COLOR": "1"}).splitlines()
    assert max(map(len, rows)) == 120
    shown = rows[1].split()[0]
    head, tail = shown.split("…")
    assert str(path).startswith(head) and str(path).endswith(tail) and abs(len(head) - len(tail)) <= 1
    assert rows[1].split()[2:-2] == whole.splitlines()[1].split()[2:-2]  # only paths are shortened; the end is the age
    narrow = world.iosig("status", env=world.iosig.env | {"COLUMNS": "120"}).stdout.splitlines()
    assert narrow == rows
    tiny = world.iosig("status", env=world.iosig.env | {"COLUMNS": "20"}).stdout.splitlines()
    assert tiny[1].split()[2:] == whole.splitlines()[1].split()[2:]  # no path is shorter than a glance can use
    assert [len(cell) for cell in tiny[1].split()[:2]] == [16, 16]


# ---- colours


def test_colours_are_for_terminals_that_have_them(iosig: Iosig) -> None:
    assert on_terminal(iosig, "prepar").startswith(f"{RED}iosig:{PLAIN} unknown command")
    assert on_terminal(iosig, "choose", "--presets").startswith(f"{BOLD}preset")
    assert f"{YELLOW}iosig: note:{PLAIN} '" in on_terminal(iosig, "prepare", "--dry-run", "a", "container")
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert "\x1b" not in on_terminal(iosig, "prepar", env=env)
        assert "\x1b" not in on_terminal(iosig, "choose", "--presets", env=env)
    assert "\x1b" not in iosig("prepar", check=2, env=iosig.env | {"TERM": "xterm"}).stderr
    assert "\x1b" not in iosig("choose", "--presets", env=iosig.env | {"TERM": "xterm"}).stdout


# ---- one file for stdout and stderr


def test_lines_of_both_streams_are_written_whole_and_in_order(world: World) -> None:
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    rules = world.work / "rules.toml"
    rules.write_text('schema = "iosig.rules/1"\n[[rule]]\npath = "*"\nsig = "container"\n')
    names = [f"{n:03}" * 40 for n in range(100)]  # each has a note, then a line on stdout
    log, trace = world.work / "log", world.work / "trace"
    with log.open("wb") as both:
        strace = ["strace", "-qq", "-e", "trace=write", "-s", "100000", "-o", trace]
        command = [world.iosig.binary, "prepare", "--dry-run", "--rules", rules, *names]
        subprocess.run([*strace, *command], cwd=world.work, env=world.env, stdout=both, stderr=both, check=True)
    writes = [line for line in trace.read_text().splitlines() if re.match(r"write\([12],", line)]
    assert len(writes) >= 200 and all(re.search(r'\\n", (\d+)\) += \1$', line) for line in writes)
    told = [match[0] for line in log.read_text().splitlines() for match in re.findall(r"((\d\d\d)\2{39})\'", line)]
    assert [name for name, _ in itertools.groupby(told)] == names


# ---- progress


@pytest.fixture
def long_job(tmp_path: Path) -> Path:
    """A map whose replay takes a while: two ranks take turns, millions of writes."""
    path = tmp_path / "job.map"
    path.write_text("".join(f"{n % 2} {n * 8} 8\n" for n in range(2_000_000)))
    return path


LINE = re.compile(r"writing: \d+ writes of \d+ writes \(\d+ %\), \d+ writes/s, .* left")


def test_progress_in_a_log_is_a_line_every_few_seconds(iosig: Iosig, long_job: Path, tmp_path: Path) -> None:
    words = [iosig.binary, "replay", "--in-turn", "--container", long_job, tmp_path / "made"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=iosig.env, text=True) as replay:
        assert replay.stderr is not None
        line = replay.stderr.readline()
        replay.send_signal(signal.SIGINT)
    assert LINE.fullmatch(line.removesuffix("\n")), line


def test_progress_on_a_terminal_is_one_line_that_fits(iosig: Iosig, long_job: Path, tmp_path: Path) -> None:
    stopped = ("timeout", "--foreground", "-s", "INT", "4")
    shown = on_terminal(iosig, "replay", "--in-turn", long_job, tmp_path / "made", columns=40, before=stopped)
    drawn = [part for part in shown.split("\r") if part.startswith("writing:")]
    assert drawn and max(map(len, drawn)) < 40
    assert all("…" in line or "..." in line for line in drawn) and drawn[-1].rstrip().endswith(" left")


@pytest.mark.parametrize("verb", [("run",), ("trace", "-o", "trace")])
def test_signals_that_the_caller_ignores_are_ignored_by_the_program(
    iosig: Iosig, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    """A service manager ignores SIGPIPE for a server, which then gets EPIPE."""

    def ignore() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    command = [iosig.binary, *verb, "--", "grep", "SigIgn", "/proc/self/status"]
    for preexec, wanted in ((ignore, True), (None, False)):
        shutil.rmtree(tmp_path / "trace", ignore_errors=True)
        told = subprocess.run(command, cwd=tmp_path, env=iosig.env, preexec_fn=preexec, capture_output=True, text=True)
        mask = int(told.stdout.split()[1], 16)
        for number in (signal.SIGCHLD, signal.SIGPIPE):
            assert bool(mask & 1 << (number - 1)) == wanted, told
