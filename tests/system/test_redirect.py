"""libiosig in real processes: which opens it redirects, and that it never disturbs its host."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from conftest import BUILD
from redirecting import World, compile_c, needs_mounts, race_for_one_path

NEW = os.O_CREAT | os.O_WRONLY
APP, IN, OUT, TRUNC, NOREPLACE = 1, 8, 16, 32, 64  # libstdc++'s openmode bits


def test_a_new_file_lands_on_the_best_mount_point_and_errno_is_untouched(world: World, hinted: Path) -> None:
    done = world.run(hinted, "open", "out", NEW, "random", input=b"hello")
    assert done.stdout == b"0 77\n" and done.stderr == b""
    destination = (world.work / "out").readlink()
    assert destination.parent.parent == world.user_directory
    assert destination.read_bytes() == (world.work / "out").read_bytes() == b"hello"
    assert stat.S_IMODE(world.user_directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(world.journal()[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(world.journal()[0].parent.stat().st_mode) == 0o700


def test_a_path_relative_to_a_directory_is_resolved_there(world: World, hinted: Path) -> None:
    (world.work / "sub").mkdir()
    assert world.run(hinted, "openat", "sub:out", NEW, "random", input=b"x").stdout == b"0 77\n"
    assert (world.work / "sub/out").is_symlink()


@pytest.mark.parametrize(
    "flags",
    [NEW | os.O_EXCL, NEW | os.O_NOFOLLOW, os.O_WRONLY, os.O_RDONLY, os.O_TMPFILE | os.O_RDWR, os.O_PATH,
     os.O_CREAT | os.O_DIRECTORY],
    ids=["O_EXCL", "O_NOFOLLOW", "no O_CREAT", "read", "O_TMPFILE", "O_PATH", "O_DIRECTORY"],
)  # fmt: skip
def test_an_open_that_cannot_pass_a_link_behaves_as_without_iosig(world: World, hinted: Path, flags: int) -> None:
    path = "." if flags & os.O_TMPFILE == os.O_TMPFILE else "out"
    with_hint = world.run(hinted, "open", path, flags, "random")
    made = (world.work / "out").exists()
    assert not (world.work / "out").is_symlink() and not world.journal()
    (world.work / "out").unlink(missing_ok=True)
    world.env["IOSIG_DISABLE"] = "1"
    assert with_hint.stdout == world.run(hinted, "open", path, flags, "random").stdout
    assert (world.work / "out").exists() == made


def test_what_exists_is_left_alone(world: World, hinted: Path) -> None:
    (world.work / "file").write_bytes(b"old")
    (world.work / "dangling").symlink_to(world.work / "elsewhere")
    (world.work / "directory").mkdir()
    for name in ("file", "dangling", "directory", "/dev/null"):
        world.run(hinted, "open", name, NEW, "random", input=b"new")
    assert (world.work / "file").read_bytes() == b"new" and not (world.work / "file").is_symlink()
    assert (world.work / "elsewhere").read_bytes() == b"new"
    assert not world.journal()


@pytest.mark.parametrize(
    ("mode", "redirected"),
    [("w", True), ("wb+", True), ("a", True), ("w,ccs=x", True), ("r", False), ("r+", False), ("wx", False)],
)
def test_fopen_modes_that_create_are_redirected(world: World, hinted: Path, mode: str, redirected: bool) -> None:
    world.run(hinted, "fopen", "out", mode, "random")
    assert (world.work / "out").is_symlink() == redirected


@pytest.mark.parametrize(
    ("openmode", "redirected"),
    [(OUT, True), (OUT | TRUNC, True), (APP, True), (OUT | APP, True), (IN | OUT | TRUNC, True), (IN | OUT | APP, True),
     (IN, False), (IN | OUT, False), (OUT | NOREPLACE, False), (OUT | TRUNC | APP, False), (TRUNC, False),
     (IN | TRUNC, False)],
)  # fmt: skip
def test_fstream_modes_that_create_are_redirected(world: World, hinted: Path, openmode: int, redirected: bool) -> None:
    world.run(hinted, "fstream", "out", openmode, "random")
    assert (world.work / "out").is_symlink() == redirected


def test_fstream_modes_are_judged_as_the_library_judges_them(world: World, tmp_path: Path, hinted: Path) -> None:
    """The oracle is libstdc++ itself: does a stream with this mode create its file?"""
    source = tmp_path / "oracle.cpp"
    source.write_text(
        "#include <fstream>\n#include <cstdlib>\n#include <cstdio>\n#include <unistd.h>\n"
        'int main() { for (int m = 0; m < 64; ++m) { ::unlink("o");'
        ' { std::fstream s("o", std::ios_base::openmode(m)); }'
        " std::putchar(::access(\"o\", F_OK) == 0 ? '1' : '0'); } }\n"
    )
    subprocess.run(["g++", "-o", tmp_path / "oracle", source], check=True)
    creates = subprocess.run([tmp_path / "oracle"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    for mode in range(64):
        world.run(hinted, "fstream", f"out{mode}", mode, "random")
    assert "".join("01"[(world.work / f"out{mode}").is_symlink()] for mode in range(64)) == creates


def test_a_file_that_lies_on_the_best_mount_point_gets_no_link(world: World, hinted: Path) -> None:
    assert world.run(hinted, "redirect", world.fast / "out", "", "random").stdout.startswith(
        b"0 77 it is best placed there"
    )
    assert not (world.fast / "out").is_symlink() and not world.journal()


def test_a_program_that_knows_its_streams_learns_what_happened(world: World, hinted: Path) -> None:
    assert world.run(hinted, "redirect", "out", "", "random").stdout == b"1 77 \n"
    assert world.run(hinted, "redirect", "out", "", "random").stdout == b"0 77 it exists already\n"
    assert world.run(hinted, "redirect", "other", "", "randon").stdout.startswith(b"-1 77 ")
    assert world.run(hinted, "redirect", "missing/out", "", "random").stdout.startswith(
        b"0 77 cannot open the directory"
    )


TWICE = r"""
#include <fcntl.h>
#include <iosig/iosig.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv) {
  char path[32];
  for (int i = 0; i < 5; i++) {
    snprintf(path, sizeof path, "out%d", i);
    iosig_open_hint(AT_FDCWD, path, O_CREAT | O_WRONLY, argv[1 + i % (argc - 1)]);
    close(open(path, O_CREAT | O_WRONLY, 0666));
  }
  return access("out4", F_OK);
}
"""


@pytest.fixture(scope="session")
def five_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(TWICE, tmp_path_factory.mktemp("five"), "five")


def test_without_a_storage_description_it_says_so_once_and_redirects_nothing(world: World, five_files: Path) -> None:
    del world.env["IOSIG_STORAGE"]
    done = world.run(five_files, "random", "temp")
    if Path("/etc/iosig/storage.toml").exists():
        pytest.skip("this machine has a storage description of its own")
    assert done.returncode == 0
    assert done.stderr.count(b"\n") == 1 and b"run 'iosig storage probe'" in done.stderr
    assert not (world.work / "out0").is_symlink()


def test_a_bad_storage_description_is_named_once(world: World, five_files: Path) -> None:
    world.storage.write_text('schema = "iosig.storage/1"\n[[mount_point]]\npath = 5\n')
    done = world.run(five_files, "random")
    assert done.returncode == 0 and not (world.work / "out0").is_symlink()
    assert done.stderr.count(b"iosig: ") == 1 and b"storage.toml:3" in done.stderr


def test_nothing_admissible_is_said_once_for_each_signature_with_the_reasons(world: World, five_files: Path) -> None:
    done = world.run(five_files, "tamperproof", "archive")
    assert done.returncode == 0 and not (world.work / "out0").is_symlink()
    assert done.stderr.count(b"no mount point admits 'tamperproof'") == 1
    assert done.stderr.count(b"no mount point admits 'archive'") == 1
    assert os.fsencode(world.fast) in done.stderr


def test_a_malformed_signature_is_said_once(world: World, five_files: Path) -> None:
    done = world.run(five_files, "randon")
    assert done.returncode == 0 and not (world.work / "out0").is_symlink()
    assert done.stderr.count(b"iosig: ") == 1 and b"random" in done.stderr


def test_a_state_directory_that_cannot_be_written_is_said_once(world: World, five_files: Path) -> None:
    world.env["IOSIG_STATE"] = "/dev/null/nowhere"
    done = world.run(five_files, "random")
    assert done.returncode == 0 and not (world.work / "out0").is_symlink()
    assert done.stderr.count(b"iosig: ") == 1 and b"/dev/null/nowhere" in done.stderr


def test_a_planted_directory_is_not_used(world: World, five_files: Path, tmp_path: Path) -> None:
    (tmp_path / "trap").mkdir()
    world.user_directory.symlink_to(tmp_path / "trap")
    done = world.run(five_files, "random")
    assert done.returncode == 0 and not (world.work / "out0").is_symlink()
    assert done.stderr.count(b"iosig: ") == 1 and b"planted" in done.stderr
    assert not list((tmp_path / "trap").iterdir()) and not world.journal()


def test_it_explains_itself_on_request_and_can_be_switched_off(world: World, five_files: Path) -> None:
    world.env["IOSIG_VERBOSE"] = "1"
    assert world.run(five_files, "random").stderr.count(b"now leads to") == 5
    assert world.run(five_files, "random").stderr.count(b"it exists already") == 5
    world.env["IOSIG_DISABLE"] = "1"
    for name in world.work.iterdir():
        name.unlink()
    assert world.run(five_files, "random").stderr.count(b"switched off") == 5
    assert not (world.work / "out0").is_symlink()


def test_a_data_file_that_took_the_place_of_stderr_gets_no_message(world: World, tmp_path: Path) -> None:
    program = compile_c(
        "#include <fcntl.h>\n#include <iosig/iosig.h>\n#include <unistd.h>\n"
        'int main(void) { close(2); int fd = open("data", O_CREAT | O_WRONLY, 0666);'
        ' iosig_open_hint(AT_FDCWD, "out", O_CREAT | O_WRONLY, "nonsense"); return fd != 2; }\n',
        tmp_path, "closes_stderr",
    )  # fmt: skip
    assert world.run(program).returncode == 0
    assert (world.work / "data").read_bytes() == b""


def test_processes_that_race_for_a_path_reach_one_file(world: World, hinted: Path) -> None:
    for attempt in range(5):
        race_for_one_path(world, hinted, f"log{attempt}", "random")
        assert len(world.journal()) == attempt + 1
    assert len(list(world.user_directory.iterdir())) == 5


THREADS = r"""
#include <fcntl.h>
#include <iosig/iosig.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int wrong;
static int one(const char *path) {
  iosig_open_hint(AT_FDCWD, path, O_CREAT | O_WRONLY, "random");
  int fd = open(path, O_CREAT | O_WRONLY, 0666);
  return fd < 0 || write(fd, path, 1) != 1 || close(fd);
}
static void *many(void *number) {
  char path[32];
  for (int i = 0; i < 60; i++) {
    snprintf(path, sizeof path, "t%ld.%d", (long)number, i);
    wrong |= one(path);
    snprintf(path, sizeof path, "shared%d", i);
    wrong |= one(path);
  }
  return 0;
}
int main(void) {
  pthread_t threads[6];
  char path[32];
  for (long i = 0; i < 6; i++) pthread_create(&threads[i], 0, many, (void *)i);
  for (int i = 0; i < 40; i++) {
    snprintf(path, sizeof path, "child%d", i);
    if (fork() == 0) _exit(one(path));
  }
  for (int i = 0; i < 6; i++) pthread_join(threads[i], 0);
  for (int status; wait(&status) > 0;) wrong |= status;
  return wrong;
}
"""


def test_threads_and_the_children_they_fork_decide_at_once(world: World, tmp_path: Path) -> None:
    program = compile_c(THREADS, tmp_path, "threads")
    done = world.run(program)
    assert done.returncode == 0 and done.stderr == b""
    names = list(world.work.iterdir())
    assert len(names) == 6 * 60 + 60 + 40 and all(name.is_symlink() for name in names)
    assert len(world.journal()) == len(names)


@pytest.mark.parametrize(
    ("mode", "signature", "stride"),
    [("hint", "random", 1), ("hint", "random totalsize(1K)", 5), ("handle", "", 7)],
    ids=["hint", "reservation", "handle"],
)
def test_a_child_never_waits_for_a_thread_that_only_its_parent_has(
    world: World, fork_at_step: Path, mode: str, signature: str, stride: int
) -> None:
    """Whatever call of the library another thread is in when the program forks, the child can use the library."""
    done = world.run(fork_at_step, mode, signature, stride, timeout=600)
    assert done.returncode == 0, done.stdout.decode()
    assert int(done.stdout.split()[0]) > 40


@pytest.mark.parametrize("name", [b"new\nline", b"\xff\xfe no utf-8", b"n" * 255, "ä".encode() * 127 + b"x", b"-rf *"])
def test_any_name_goes_out_and_comes_home(world: World, hinted: Path, name: bytes) -> None:
    path = world.work / os.fsdecode(name)
    assert world.run(hinted, "open", path, NEW, "random", input=b"data").stdout == b"0 77\n"
    assert path.is_symlink()
    assert b"  linked  " in world.run(world.iosig.binary, "status").stdout
    assert world.run(world.iosig.binary, "finalize", "--all").returncode == 0
    assert not path.is_symlink() and path.read_bytes() == b"data"
    assert not world.journal() and not list(world.user_directory.iterdir())


@needs_mounts
def test_a_destination_that_fills_up_gives_the_programs_own_error(world: World, hinted: Path) -> None:
    script = f'mount -t tmpfs -o size=1M none "{world.fast}" && cd "{world.work}" && head -c 4M /dev/zero | "$@"'
    done = world.run_with_own_mounts(script, hinted, "open", "out", NEW, "random")
    assert done.returncode == 5
    assert done.stderr.decode() == f"write: {os.strerror(errno.ENOSPC)}\n"


def test_the_library_shows_its_c_interface_and_nothing_else() -> None:
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", BUILD / "lib/libiosig.so"], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split()[-1].split("@")[0] for line in symbols.splitlines()} - {"IOSIG_1"}
    assert names == {
        "iosig_open_hint", "iosig_fopen_hint", "iosig_fstream_hint", "iosig_redirect", "iosig_last_error",
        *(f"iosig_container_{call}" for call in (
            "open", "close", "pread", "pwrite", "append", "size", "truncate", "sync", "unlink", "rename")),
    }  # fmt: skip
    needed = subprocess.run(
        ["readelf", "-d", BUILD / "lib/libiosig.so"], capture_output=True, text=True, check=True
    ).stdout
    assert "libstdc++" not in needed and "libgcc_s" not in needed


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as another user")
def test_a_set_user_id_program_does_not_follow_its_users_environment(world: World, hinted: Path) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("needs setpriv")
    with tempfile.TemporaryDirectory() as directory:  # pytest's own is closed to other users
        Path(directory).chmod(0o755)
        program = Path(shutil.copy(hinted, directory))
        program.chmod(0o4755)
        done = world.run(
            "setpriv", "--reuid=65534", "--clear-groups", program, "redirect", "out", "", "random", cwd="/"
        )
    if b"error while loading" in done.stderr:
        pytest.skip("other users cannot reach the library")
    assert b"switched off" in done.stdout
