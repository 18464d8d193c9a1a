"""A device that does not store what it took: no way home takes the copy for complete, and the data stay.

A file system writes to the device long after write(2) has returned, and tells of a failure once: by the next call that
waits for the data. Here that is ext4 on a file whose blocks have no room, as on a thin-provisioned volume that is full.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from redirecting import World, needs_mounts

SIZE = 20 << 20
DRAIN = ["--background", "--foreground", "--timeout", "1s"]

# $1: a directory with the file `data`; $2...: the command, which settles `home/work/out` below it, where nothing but
# directories is stored. Prints its output, "status N", and "kept" if the path leads to the data, whole.
SCRIPT = r"""
set -e
cd "$1"; shift
mkdir room home
mount -t tmpfs -o size=120m none room
truncate -s 48M room/made
mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 room/made || exit 77
mount -o loop room/made home
mkdir home/work; for i in $(seq 20); do ln -s x home/work/$i; done; rm home/work/*
umount home
cp --sparse=never room/made room/image; rm room/made
dumpe2fs room/image 2>/dev/null | sed -n 's/^  Free blocks: //p' | tr ',' '\n' | while read -r range; do
  from=${range%-*} to=${range#*-}
  [ -z "$from" ] || [ $((to - from)) -le 64 ] || fallocate -p -o $((from * 4096)) -l $(((to - from) * 4096)) room/image
done
mount -o remount,size=$(($(du -k room/image | cut -f1) + 2048))k room
dd if=/dev/zero of=room/fill bs=64k 2>/dev/null || true
mount -o loop room/image home
"$IOSIG" prepare home/work/out random >/dev/null
cp data "$(readlink home/work/out)"
[ -z "$COPIED" ] || cp --remove-destination data home/work/out
status=0; "$@" || status=$?
echo "status $status"
test ! -L home/work/out || cmp data home/work/out && echo kept
"""


@needs_mounts
@pytest.mark.parametrize(
    ("way", "verify", "copied_by_user"),
    [([], "copy", ""), (DRAIN, "copy", ""), (DRAIN, "none", ""), ([], "copy", "yes")],
    ids=["finalize", "drain", "drain-unverified", "copied-by-the-user"],
)
def test_data_that_the_device_did_not_store_stay_where_they_are(
    world: World, tmp_path: Path, way: list[str], verify: str, copied_by_user: str
) -> None:
    if shutil.which("mkfs.ext4") is None:
        pytest.skip("cannot make an ext4 file system")
    place = tmp_path / "place"
    place.mkdir()
    (place / "data").write_bytes(bytes(range(1, 256)) * (SIZE // 255))
    world.env |= {"IOSIG": str(world.iosig.binary), "COPIED": copied_by_user}
    command = [world.iosig.binary, "finalize", *way, "--verify", verify, "home/work/out"]
    done = world.run_with_own_mounts(SCRIPT, place, *command)
    if done.returncode == 77:
        pytest.skip("cannot make an ext4 file system")
    text = (done.stdout + done.stderr).decode()
    assert "kept" in text and "brought home" not in text, text
    assert way or "status 0" not in text, text
    [entry] = [json.loads(path.read_text()) for path in world.journal()]
    assert Path(entry["destination"]).read_bytes() == (place / "data").read_bytes()
