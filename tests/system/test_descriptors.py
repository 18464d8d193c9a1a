"""Containers and the programs that use them share one limit of descriptors (RLIMIT_NOFILE)."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from conftest import BUILD, Iosig
from mounting import Mount

needs_preload = pytest.mark.skipif(
    not (BUILD / "lib" / "libiosig-preload.so").exists(), reason="built without libiosig-preload.so"
)

MANY_CONTAINERS = """
import errno, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
directory, least = sys.argv[1], int(sys.argv[2])
fds = []
try:
    while True:
        fds.append(os.open(f"{directory}/{len(fds)}", os.O_RDWR | os.O_CREAT, 0o644))
        assert os.write(fds[-1], b"first") == 5
except OSError as error:
    assert error.errno == errno.EMFILE, error
assert len(fds) >= least, len(fds)
for n, fd in enumerate(fds):  # all of them still work
    assert os.pwrite(fd, b"%05d" % n, 5) == 5
for n, fd in enumerate(fds):
    assert os.pread(fd, 100, 0) == b"first%05d" % n
os.close(fds.pop())
pipe = os.pipe()
for fd in fds: os.close(fd)
print(len(fds))
"""

WRITE_DROPPINGS = """
import os, sys
path, count = sys.argv[1], int(sys.argv[2])
for n in range(count):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    os.pwrite(fd, b"%07d\\n" % n, 8 * (n * 7 % count))
    os.close(fd)
"""

READ_DROPPINGS = """
import os, resource, sys
path, count = sys.argv[1], int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
wanted = [b""] * count
for n in range(count): wanted[n * 7 % count] = b"%07d\\n" % n
wanted = b"".join(wanted)
fd = os.open(path, os.O_RDONLY)
assert b"".join(os.pread(fd, 8, at) for at in range(0, 8 * count, 8)) == wanted
assert os.pread(fd, 8 * count + 1, 0) == wanted
pipes = []
try:
    while True: pipes.append(os.pipe())
except OSError: pass
assert len(pipes) >= 70, len(pipes)  # the program has most of the limit for itself
os.close(pipes.pop()[0])
assert os.pread(fd, 8 * count, 0) == wanted  # what containers keep open is closed when nothing is free
"""


def in_python(script: str, *arguments: object) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", script, *map(str, arguments)]


@needs_preload
def test_hundreds_of_containers_are_open_at_once(iosig: Iosig, tmp_path: Path) -> None:
    iosig("run", "--container", f"{tmp_path}/*", "--", *in_python(MANY_CONTAINERS, tmp_path, 300))
    for name in ("0", "299"):
        assert iosig.json("container", "check", tmp_path / name)["sound"]


@needs_preload
def test_a_reader_of_many_droppings_leaves_descriptors_to_its_program(iosig: Iosig, tmp_path: Path) -> None:
    box, count = tmp_path / "box", 600
    iosig("run", "--container", box, "--", *in_python(WRITE_DROPPINGS, box, count))
    assert sum(1 for _ in box.glob("d*/data.*")) == count
    iosig("run", "--", *in_python(READ_DROPPINGS, box, count))


def test_a_mount_serves_more_files_than_it_may_have_open(iosig: Iosig, mount: Mount, tmp_path: Path) -> None:
    source, fds, files = tmp_path / "source", 256, 1500
    box = source / "box"
    mounted = mount("--containers", "box")
    subprocess.run(in_python(WRITE_DROPPINGS, mounted / "box", 300), check=True)
    content = (mounted / "box").read_bytes()
    assert len(content) == 8 * 300 and box.is_dir()
    subprocess.run(["umount", mounted], check=True)
    for n in range(files):
        place = source / "tree" / f"{n % 7}" / f"{n % 3}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"file{n}").write_text(str(n))

    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (fds, fds))
    pid = iosig.json("mount", source, mounted, preexec_fn=limit)["pid"]
    mount.pids.append(pid)  # type: ignore[attr-defined]
    tree, copy = mounted / "tree", tmp_path / "copy"
    found = subprocess.run(["ls", "-lR", tree], capture_output=True, text=True, check=True)
    assert found.stdout.count(" file") == files
    shutil.copytree(tree, copy)
    compared = subprocess.run(["diff", "-r", copy, source / "tree"], capture_output=True, text=True)
    assert (compared.returncode, compared.stdout) == (0, "")
    assert (mounted / "box").read_bytes() == content
    subprocess.run(["cp", "-r", copy, mounted / "again"], check=True)
    assert subprocess.run(["diff", "-r", copy, source / "again"], capture_output=True).returncode == 0
    subprocess.run(["rm", "-r", mounted / "again", tree], check=True)
    assert sorted(path.name for path in source.iterdir()) == ["box"]
    assert len(list(Path(f"/proc/{pid}/fd").iterdir())) < fds * 3 / 4
