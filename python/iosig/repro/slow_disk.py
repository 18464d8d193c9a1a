"""A file system on a slow disk: lab/slowdisk under a loop device, with ext4. Real latency for every process."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from iosig.interruptions import undisturbed
from iosig.repro.machine import built_program, call

LATENCY_US, BYTES_PER_S, CHANNELS = 2000, 400_000_000, 16
DESCRIPTION = "a disk of the lab: 2 ms a request, 400 MB/s, 16 requests at once; ext4"


def refused() -> str:
    """Why there can be no such disk here; empty: there can."""
    if os.geteuid() != 0:
        return "it needs root, for a loop device and a mount"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "it needs FUSE"
    missing = [name for name in ("losetup", "mkfs.ext4", "mount") if shutil.which(name) is None]
    return f"it needs {', '.join(missing)}" if missing else ""


@contextmanager
def slow_disk(size: int) -> Iterator[Path]:
    """A directory on such a disk of `size` bytes; all of it is gone at the end. An OSError says why there is none."""
    if why := refused():
        raise OSError(f"a slow disk of the lab: {why}")
    scratch = Path(tempfile.mkdtemp(prefix="iosig-slow-disk-"))
    disk, mounted, loop = scratch / "disk", scratch / "mounted", ""
    mounted.mkdir()
    disk.touch()
    model = [f"read={BYTES_PER_S}", f"write={BYTES_PER_S}", f"latency_us={LATENCY_US}", "seek_us=0"]
    try:
        call(built_program("slowdisk"), disk, f"size={size}", *model, f"channels={CHANNELS}")
        loop = call("losetup", "--direct-io=on", "--find", "--show", disk).strip()
        call("mkfs.ext4", "-q", "-E", "nodiscard", loop)
        call("mount", loop, mounted)
        yield mounted
    finally:
        with undisturbed():
            for words in (["umount", mounted], ["losetup", "--detach", loop] if loop else [], ["umount", disk]):
                if words:
                    subprocess.run(list(map(str, words)), capture_output=True, check=False)
            shutil.rmtree(scratch, ignore_errors=True)
