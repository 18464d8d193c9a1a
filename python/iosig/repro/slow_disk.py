"""A file system on a slow disk: lab/slowdisk under a loop device, with ext4. Real latency for every process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from iosig.interruptions import undisturbed
from iosig.repro.machine import built_program, call

LATENCY_US, BYTES_PER_S, CHANNELS = 2000, 400_000_000, 16
PATIENCE_S = 10
DESCRIPTION = "a disk of the lab: 2 ms a request, 400 MB/s, 16 requests at once; ext4"


def refused() -> str:
    """Why there can be no such disk here; empty: there can."""
    if os.geteuid() != 0:
        return "it needs root, for a loop device and a mount"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "it needs FUSE"
    missing = [name for name in ("losetup", "mkfs.ext4", "mount") if shutil.which(name) is None]
    return f"it needs {', '.join(missing)}" if missing else ""


def is_mounted(path: Path) -> bool:
    return f" {path} " in Path("/proc/self/mountinfo").read_text()


def loops_over(disk: Path) -> list[str]:
    """Loop devices with this file. The kernel's table is asked: the file's server may be dead."""
    found = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # detached meanwhile
            if backing.read_text().rstrip("\n") == str(disk):
                found.append(f"/dev/{backing.parts[3]}")
    return found


def remove_disk(disk: Path, mounted: Path) -> None:
    """Undoes what there is of a slow disk, also where making it was interrupted, and waits for those that hold it:
    programs that were killed a moment ago, and the kernel, which detaches loop devices later."""
    end_s, refusal = time.monotonic() + PATIENCE_S, ""
    while True:
        undo = [["umount", str(mounted)]] if is_mounted(mounted) else [["losetup", "-d", n] for n in loops_over(disk)]
        if not undo and is_mounted(disk):
            undo = [["umount", str(disk)]]
        if not undo:
            return
        for words in undo:
            refusal = subprocess.run(words, capture_output=True, text=True, check=False).stderr.strip() or refusal
        if time.monotonic() > end_s:
            print(f"iosig repro: {disk} is still there ({refusal}); remove it by hand", file=sys.stderr)
            return
        time.sleep(0.05)


@contextmanager
def slow_disk(size: int) -> Iterator[Path]:
    """A directory on such a disk of `size` bytes; all of it is gone at the end. An OSError says why there is none."""
    if why := refused():
        raise OSError(f"a slow disk of the lab: {why}")
    model = [f"read={BYTES_PER_S}", f"write={BYTES_PER_S}", f"latency_us={LATENCY_US}", "seek_us=0"]
    scratch = Path(tempfile.mkdtemp(prefix="iosig-slow-disk-")).resolve()  # as the kernel names it
    disk, mounted = scratch / "disk", scratch / "mounted"
    try:
        mounted.mkdir()
        disk.touch()
        call(built_program("slowdisk"), disk, f"size={size}", *model, f"channels={CHANNELS}")
        loop = call("losetup", "--direct-io=on", "--find", "--show", disk).strip()
        call("mkfs.ext4", "-q", "-E", "nodiscard", loop)
        call("mount", loop, mounted)
        call("losetup", "--detach", loop)  # with its mount, also if this process is killed
        yield mounted
    finally:
        with undisturbed():
            remove_disk(disk, mounted)
            shutil.rmtree(scratch, ignore_errors=True)
