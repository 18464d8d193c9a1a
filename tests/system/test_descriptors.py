"""Containers and the programs that use them share one limit of descriptors (RLIMIT_NOFILE)."""

from __future__ import annotations

import os
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


def mount_with_few_fds(iosig: Iosig, mount: Mount, source: Path, mounted: Path, fds: int) -> int:
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (fds, fds))
    pid: int = iosig.json("mount", source, mounted, preexec_fn=limit)["pid"]
    mount.pids.append(pid)  # type: ignore[attr-defined]
    return pid


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

    pid = mount_with_few_fds(iosig, mount, source, mounted, fds)
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


OPEN_AND_REMOVE = """
import os, sys
os.chdir(sys.argv[1])
files = [os.open(f"file{n}", os.O_RDWR | os.O_CREAT) for n in range(40)]
for n, file in enumerate(files):
    assert os.write(file, b"content %d" % n) > 0
for n in range(200):
    os.close(os.open(f"other{n}", os.O_WRONLY | os.O_CREAT))
for n in range(40):
    if n % 2:
        os.unlink(f"file{n}")
    else:
        os.close(os.open("new", os.O_WRONLY | os.O_CREAT))
        os.rename("new", f"file{n}")
for n in range(200):
    os.stat(f"other{n}")
for n, file in enumerate(files):
    assert os.fstat(file).st_nlink == 0
    assert os.pread(file, 100, 0) == b"content %d" % n
    os.fchmod(file, 0o600)
    os.ftruncate(file, 3)
    os.fsync(file)
    assert os.fstat(file).st_size == 3 and os.fstat(file).st_mode & 0o777 == 0o600
"""


OPEN_ALL = """
import errno, os, sys
os.chdir(sys.argv[1])
files = []
try:
    while True:
        files.append(os.open(f"all{len(files)}", os.O_RDWR | os.O_CREAT))
except OSError as refusal:
    assert refusal.errno == errno.EMFILE
for n, file in enumerate(files):
    assert os.write(file, b"content %d" % n) > 0
for n, file in enumerate(files):  # the daemon has no descriptor left for what it does at a close
    os.close(file)
    assert open(f"all{n}").read() == "content %d" % n
assert len(files) > 40
"""


def test_many_open_files_whose_names_are_removed_or_replaced_stay_usable(
    iosig: Iosig, mount: Mount, tmp_path: Path
) -> None:
    """A daemon of few descriptors closes idle ones, and no name leads to these files any more. A program that uses up
    all of them is told so where it opens, and nowhere else."""
    mounted = mount()
    subprocess.run(["umount", mounted], check=True)
    mount_with_few_fds(iosig, mount, tmp_path / "source", mounted, 128)
    subprocess.run(in_python(OPEN_AND_REMOVE, mounted), check=True)
    subprocess.run(in_python(OPEN_ALL, mounted), check=True)


# Looks at more files and directories than the daemon may have open, so that it closes descriptors.
LOOK_ELSEWHERE = "look() { ls -lR $MOUNTED/others > /dev/null; }; look\n"
STAT_AFTER_UNLINK = (
    "import os; fd = os.open('one/two/file', os.O_PATH); os.unlink('one/two/file'); "
    "os.system('ls -lR $MOUNTED/others > /dev/null'); print(os.stat(f'/proc/self/fd/{fd}').st_size)"
)


@pytest.mark.parametrize(
    ("commands", "printed"),
    [
        ("cd one/two; look; /bin/pwd; cat file", "{mounted}/one/two\nfirst\n"),
        ("cd one/two; mv ../../one ../../three; look; /bin/pwd; cat file", "{mounted}/three/two\nfirst\n"),
        ("mv one/two/file one/moved; look; cat one/moved; ls one/two", "first\nunlinked\n"),
        ("mv -T one/two one/other; look; mv one three; look; cat three/other/file", "first\n"),
        ("exec 5<>one/two/file; look; readlink /proc/self/fd/5", "{mounted}/one/two/file\n"),
        ("exec 5<one/two/file; rm one/two/file; look; cat <&5; stat -L -c %h /proc/self/fd/5", "first\n0\n"),
        ("exec 5<>one/two/unlinked; rm one/two/unlinked; look; cat <&5", "second\n"),
        (
            "exec 5<one/two/file; mv one/two/unlinked one/two/file; look; cat <&5; stat -L -c %h /proc/self/fd/5",
            "first\n0\n",
        ),
        ("cd one/two; rm file unlinked; rmdir $MOUNTED/one/two; look; stat -c %F .; ls", "directory\n"),
        ("cd one/two; rm -r $MOUNTED/one; mkdir -p $MOUNTED/one/two; look; stat -c %F .; ls", "directory\n"),
        ("cd one; mv -T $MOUNTED/others/5 $MOUNTED/others/6; rm -r two; look; stat -c %F .; ls", "directory\n"),
        (f'{sys.executable} -S -c "{STAT_AFTER_UNLINK}"', "6\n"),
        ("ln one/two/file link; rm one/two/file; look; cat link", "first\n"),
        (
            "cat one/two/file; look; rm $SOURCE/one/two/file; echo new > $SOURCE/one/two/file; cat one/two/file",
            "first\nnew\n",
        ),
        ("cat one/two/file; look; mv $SOURCE/one $SOURCE/three; look; cat three/two/file", "first\nfirst\n"),
        # A directory below a former child. The kernel refuses it (ELOOP) until it has looked the upper one up again.
        (
            "cd one; ls > /dev/null; cd two; mv $SOURCE/one/two $SOURCE/top; mv $SOURCE/one $SOURCE/top/one; "
            "ls one 2> /dev/null; look; cat $MOUNTED/top/file $MOUNTED/top/one/../file",
            "first\nfirst\n",
        ),
    ],
)
def test_a_mount_finds_files_again_that_it_had_closed(
    iosig: Iosig, mount: Mount, tmp_path: Path, commands: str, printed: str
) -> None:
    """The daemon has O_PATH descriptors of few files, and reopens others by their last known name."""
    mounted = mount()
    subprocess.run(["umount", mounted], check=True)
    source = tmp_path / "source"
    for n in range(100):
        (source / "others" / str(n)).mkdir(parents=True)
    (source / "one" / "two").mkdir(parents=True)
    (source / "one" / "two" / "file").write_text("first\n")
    (source / "one" / "two" / "unlinked").write_text("second\n")
    mount_with_few_fds(iosig, mount, source, mounted, 64)
    environment = os.environ | {"SOURCE": str(source), "MOUNTED": str(mounted)}
    done = subprocess.run(
        ["bash", "-c", LOOK_ELSEWHERE + commands], cwd=mounted, env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == (printed.format(mounted=mounted), "")
