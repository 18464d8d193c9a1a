"""Real programs, each run on plain files and through IOSIG, and whether the files are the same afterwards.

    .venv/bin/python tests/system/real_programs.py [PROGRAM...]      the table of docs/howto/programs.md

Each program is a shell script in a directory with two input files. The ways: `run`, all new files containers under `iosig
run`; `mount`, the same through `iosig mount`; `prepare`, its outputs redirected to other storage by `iosig prepare` and
brought home by `iosig finalize`. Equal means: the same exit status and stdout, and the same names with the same bytes.
"""

# ruff: noqa: E501 (scripts read better in one piece)
from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IOSIG = ROOT / "build/bin/iosig"
WAYS = ("run", "mount", "prepare")


@dataclass(frozen=True)
class Program:
    name: str
    needs: str  # commands, or files, that must be there
    script: str
    outputs: str = ""  # what `prepare` redirects
    differs: dict[str, str] = field(default_factory=dict)  # by way: why it is not equal, or not tried


NO_MAP = "a file that the program maps shared to write, through a mount (ENODEV)"
REFUSES = "refuses a link at its output's path, and says so"
REFUSES_IN = "refuses a link as its input, and says so"

PROGRAMS = [
    Program("sort", "sort", "sort -o sorted text; sort -S 100K -T . -o again text; cmp sorted again", "sorted again"),
    Program("dd", "dd", "dd if=data of=copy bs=5000 seek=3 conv=notrunc; dd if=copy of=part bs=512 skip=9", "copy part"),
    Program("cat, tee, head, tail", "tee", "cat text | tee one > four; head -n 9 one > two; tail -c 99 data > three", "one two three four"),
    Program("cp", "cp", "cp text copy; cp -p data same; cp --sparse=always data holes", "copy", {"prepare": REFUSES}),
    Program("install", "install", "install -m 640 text copy; install -d directory; install data directory/data", "copy"),
    Program("mv, ln, rm", "mv", "cat text > a; mv a b; cat data > c; mv c b; cat text > d; rm d; ln -s b e; cat e", "a c d"),
    Program("split, csplit", "csplit", "split -b 30000 data piece.; cat piece.?? | cmp - data; csplit -s text 100 '{3}'"),
    Program("shuf, tac, paste", "shuf", "shuf --random-source=data -o a text; tac text > b; paste a b > c", "a b c"),
    Program("truncate, fallocate", "fallocate", "cat text > a; truncate -s 5000 a; truncate -s +99K a; fallocate -l 300K a; "
            "fallocate -p -o 4096 -l 8192 a; wc -c a", "a"),
    Program("sed -i", "sed", "cat text > a; sed -i 's/a/XY/g' a; sed -n '1~3p' a > b", "b"),
    Program("awk", "awk", "awk '{ print NR, length($0) > \"lengths\"; total += NF } END { print total > \"total\" }' text",
            "lengths total"),
    Program("perl -i", "perl", "cat text > a; perl -pi -e 's/(\\w+)/ucfirst $1/e' a; perl -ne 'print if $. % 2' a > b", "b"),
    Program("ed", "ed", "cat text > a; printf '1,5d\\n$m0\\nw\\nq\\n' | ed -s a", "a"),
    Program("vim", "vim", "cat text > a; vim -Nu NONE -es -c '%s/e/E/g' -c 'set backup' -c 'wq' a < /dev/null"),
    Program("diff, patch", "patch", "sed 's/th/TH/' text > new; diff -u --label text --label new text new > p; cat text > old; patch -s old p", "p new"),
    Program("tar", "tar", "tar --mtime=@0 -cf all.tar text data; mkdir out; tar -xf all.tar -C out; tar -rf all.tar --mtime=@0 "
            "out/text; tar -tf all.tar", "all.tar"),
    Program("cpio", "cpio", "printf 'text\\ndata\\n' | cpio -o --quiet > all; mkdir out; cd out; cpio -i --quiet < ../all; "
            "rm ../all"),
    Program("gzip", "gzip", "gzip -nk text; gzip -nc data > d.gz; gzip -dc text.gz | cmp - text; gzip -d d.gz", "text.gz",
            {"prepare": REFUSES}),
    Program("pigz", "pigz", "pigz -n -p 3 -b 128 -c data > d.gz; pigz -dc d.gz | cmp - data", "d.gz"),
    Program("bzip2", "bzip2", "bzip2 -k text; bzip2 -dc text.bz2 > out; cmp out text", "out"),
    Program("pbzip2", "pbzip2", "pbzip2 -p3 -b1 -c data > d.bz2; pbzip2 -dc d.bz2 > out", "d.bz2 out"),
    Program("xz", "xz", "xz -k -T2 text; xz -dc text.xz > out; xz -c data > d.xz; xz -t d.xz; xz -d d.xz", "out d.xz",
            {"prepare": REFUSES_IN}),
    Program("zstd", "zstd", "zstd -q -T2 text; zstd -q -d text.zst -o out; zstd -q --rm out; zstd -q -t out.zst", "out", {"prepare": REFUSES_IN}),
    Program("lz4", "lz4", "lz4 -q text t.lz4; lz4 -q -d t.lz4 out; lz4 -q -t t.lz4", "t.lz4 out"),
    Program("zip, unzip", "zip unzip", "touch -d @1000000000 text data; zip -qX a.zip text data; mkdir out; cd out; "
            "unzip -q ../a.zip; zip -qd ../a.zip text; unzip -l ../a.zip | tail -n 1"),
    Program("7z", "7z", "7z a -bd -mtm=off a.7z text data > log; 7z x -oout a.7z > log; 7z t a.7z > log; rm log"),
    Program("ar, gcc, objcopy, readelf", "gcc ar objcopy", "printf 'int twice(int n) { return 2 * n; }' > t.c; gcc -c t.c; "
            "ar rcD libt.a t.o; objcopy -O binary t.o t.bin; readelf -h libt.a | wc -l; printf 'int twice(int);"
            "int main(void) { return twice(3); }' > m.c; gcc -o m m.c -L. -lt", "libt.a m"),
    Program("make", "make", "printf 'out: text\\n\\tsort text > out\\nmore: out\\n\\ttac out > more\\n' > Makefile; make -s more; "
            "make -q more && echo current", "out more"),
    Program("git", "git", "export HOME=$PWD GIT_AUTHOR_DATE='@1 +0000' GIT_COMMITTER_DATE='@1 +0000' GIT_AUTHOR_NAME=a "
            "GIT_COMMITTER_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_EMAIL=a; git init -qb m r; cp text r; cd r; git add text; "
            "git commit -qm one; echo more >> text; git commit -qam two; git gc -q; git fsck --strict; git log -p | wc -l; "
            "git clone -q . ../c; cd ..; git -C c show | tail -n 1; rm -r r/.git/index c/.git/index c/.git/logs c/.git/config"),
    Program("rsync", "rsync", "mkdir out; rsync -a text data out/; echo x >> text; rsync -a --inplace text out/; "
            "rsync -a --no-whole-file data out/; ls out"),
    Program("openssl", "openssl", "openssl enc -aes-128-ctr -K 00 -iv 00 -in data -out c; openssl enc -d -aes-128-ctr -K 00 "
            "-iv 00 -in c -out d; cmp d data; openssl dgst -sha256 c", "c d"),
    Program("jq", "jq", "printf '{\"a\":[1,2,{\"b\":3}]}' > a.json; jq .a a.json > b.json", "a.json b.json"),
    Program("bc, m4", "bc m4", "echo 'scale=500; 4*a(1)' | bc -l > pi; printf 'define(x, 42)x x' | m4 > out", "pi out"),
    Program("sqlite3, rollback journal", "sqlite3", "sqlite3 a.db 'create table t(a, b); insert into t with recursive c(n) as "
            "(select 1 union all select n + 1 from c where n < 3000) select n, hex(n * n) from c; begin; delete from t where "
            "a % 3 = 0; rollback; update t set b = b || 1 where a % 7 = 0; vacuum; pragma integrity_check; select count(*), "
            "sum(length(b)) from t'", "a.db"),
    Program("sqlite3, write-ahead log", "sqlite3", "for n in 1 2 3; do sqlite3 a.db \"pragma journal_mode=wal; create table if "
            "not exists t(a, b); insert into t select $n, 'x' from generate_series(1, 500); select count(*) from t; pragma "
            "integrity_check\"; done; sqlite3 a.db .dump > dump; rm a.db", "a.db"),
    Program("LMDB", "mdb_load mdb_dump", "awk 'BEGIN { print \"VERSION=3\\nformat=print\\ntype=btree\\nmapsize=10485760\\n"
            "HEADER=END\"; for (n = 1000; n < 3000; ++n) print \" k\" n \"\\n v\" n * n; print \"DATA=END\" }' > in; mkdir e; "
            "mdb_load -f in e; mdb_load -f in e; mdb_dump e > dump; mdb_stat e; rm -r e", "dump"),
    Program("LevelDB", "/usr/lib/python3/dist-packages/plyvel", "/usr/bin/python3 -c 'import plyvel; db = plyvel.DB(\"db\", "
            "create_if_missing=True, write_buffer_size=20000)\nfor n in range(3000): db.put(b\"%06d\" % (n * 7 % 3000), b\"v\" * "
            "(n % 99))\ndb.compact_range()\nprint(sum(1 for _ in db))'; /usr/bin/python3 -c 'import plyvel; db = plyvel.DB(\"db\")"
            "\nfor key, value in db: print(key, len(value))' > dump; rm -r db", "dump"),
    Program("GDBM", "gdbmtool", "seq 300 | sed 's/.*/store k& v&/' | gdbmtool -n a.gdbm; gdbmtool -r a.gdbm count; "
            "gdbmtool -r a.gdbm fetch k77; rm a.gdbm", "", {"mount": NO_MAP}),
    Program("RRDtool", "rrdtool", "rrdtool create a.rrd -b 1000 -s 1 DS:x:GAUGE:9:U:U RRA:AVERAGE:0.5:1:300; for n in $(seq "
            "1001 1040); do rrdtool update a.rrd $n:$((n % 7)); done; rrdtool fetch a.rrd AVERAGE -s 1000 -e 1040; rrdtool dump "
            "a.rrd > dump", "dump"),
    Program("Python: shelve, zipfile, mmap", "python3", "/usr/bin/python3 -c 'import dbm.dumb, mmap, shelve, zipfile\nwith "
            "shelve.Shelf(dbm.dumb.open(\"s\", \"n\")) as s:\n for n in range(50): s[str(n)] = list(range(n))\nwith "
            "zipfile.ZipFile(\"z.zip\", \"w\") as z: z.writestr(zipfile.ZipInfo(\"a\"), b\"a\" * 999)\nwith open(\"m\", \"wb+\") "
            "as f:\n f.truncate(9999)\n with mmap.mmap(f.fileno(), 0) as m: m[5:9] = b\"five\"\nprint(open(\"m\", \"rb\")"
            ".read()[:12])'", "m z.zip", {"mount": NO_MAP}),
    Program("NetCDF: ncgen, nccopy, ncdump", "ncgen nccopy ncdump", "printf 'netcdf t { dimensions: n = 9; variables: int "
            "x(n); data: x = 1,2,3,4,5,6,7,8,9; }' > t.cdl; ncgen -o t.nc t.cdl; nccopy -k classic t.nc c.nc; nccopy -k nc4 -d 5 "
            "c.nc d.nc; ncdump d.nc > dump; rm d.nc", "t.nc c.nc d.nc dump"),
    Program("HDF5: h5dump, h5repack", "h5dump h5repack ncgen", "printf 'netcdf t { dimensions: n = 9; variables: int x(n); "
            "data: x = 1,2,3,4,5,6,7,8,9; }' > t.cdl; ncgen -k nc4 -o t.h5 t.cdl; h5repack -f GZIP=5 t.h5 r.h5; h5dump -d x r.h5 > "
            "dump; rm t.h5 r.h5", "r.h5 dump"),
    Program("ImageMagick", "convert-im6", "convert-im6 -size 64x64 gradient:red-blue -define png:exclude-chunks=date,time "
            "a.ppm; convert-im6 a.ppm -rotate 90 b.bmp; convert-im6 b.bmp -scale 10x10 c.txt; identify-im6 b.bmp", "a.ppm b.bmp",
            {"prepare": REFUSES}),
    Program("SoX", "sox", "sox -R -n -r 8000 a.wav synth 1 sine 440; sox a.wav b.wav reverse; sox b.wav -t raw c", "a.wav b.wav c"),
    Program("fio: libaio, psync, posixaio", "fio", "for e in libaio psync posixaio; do fio --name=$e --filename=f.$e "
            "--size=512K --bs=4K --rw=randrw --ioengine=$e --iodepth=8 --verify=crc32c --verify_state_save=0 --minimal > log || "
            "echo failed $e; rm f.$e log; done"),
    Program("curl", "curl", "curl -s -o copy file://$PWD/data; cmp copy data; curl -s -r 100-199 file://$PWD/data -o part", "copy"),
]  # fmt: skip


class World:
    """A scratch directory, and a second file system to redirect to."""

    def __init__(self, scratch: Path, fast: Path) -> None:
        self.scratch, self.fast = scratch, fast
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("IOSIG_", "XDG_"))}
        self.env |= {"HOME": str(scratch / "home"), "LC_ALL": "C", "SOURCE_DATE_EPOCH": "1"}
        (scratch / "home").mkdir(exist_ok=True)
        self.storage = scratch / "storage.toml"
        self.storage.write_text(
            'schema = "iosig.storage/2"\npolicy = "paper"\n'
            f'[[mount_point]]\npath = "{fast}"\ndevice = "d"\nfilesystem = "tmpfs"\nvisibility = "local"\npersistent = false\n'
            '[[device]]\nname = "d"\nkind = "ram"\nread_bandwidth = "5GB/s"\nwrite_bandwidth = "5GB/s"\n'
        )

    def iosig(self, *words: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([IOSIG, *map(str, words)], env=self.env, cwd=self.scratch, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"iosig {words}: {done.stderr}")
        return done

    def do(self, program: Program, directory: Path, before: tuple[object, ...] = ()) -> tuple[str, dict[str, str]]:
        """What it said, and what is there now as a hash of each name's bytes."""
        words = [*map(str, before), "sh", "-c", f"umask 022; {program.script}"]
        options = {"cwd": directory, "env": self.env, "capture_output": True, "timeout": 300}
        done = subprocess.run(words, **options)  # type: ignore[call-overload]
        said = f"status {done.returncode}\n{done.stdout.decode(errors='replace')}"
        # As this way shows it: containers are files there.
        find = 'find . -type f -o -type l | sort | while read -r name; do echo "$name $(sha256sum < "$name")"; done'
        found = subprocess.run([*map(str, before), "sh", "-c", find], **options)  # type: ignore[call-overload]
        listed = dict(line.split(" ", 1) for line in found.stdout.decode().splitlines())
        said += "" if found.returncode == 0 else found.stderr.decode()
        return said.replace(str(directory), "DIRECTORY"), listed

    def directory(self, name: str, below: Path | None = None) -> Path:
        made = (below or self.scratch) / name
        made.mkdir()
        return made


def inputs(world: World, directory: Path, before: tuple[object, ...] = ()) -> None:
    text = world.scratch / "home/text"
    data = world.scratch / "home/data"
    if not text.exists():
        source = random.Random(1)
        words = ["the", "path", "earth", "write", "of", "a", "read", "three", "container", "index", "bytes"]
        text.write_text("".join(" ".join(source.choices(words, k=source.randint(1, 12))) + "\n" for _ in range(2000)))
        data.write_bytes(source.randbytes(300_000))
    for each in (text, data):
        script = f"cat {each} > {each.name}; touch -d @1000000000 {each.name}"
        subprocess.run([*map(str, before), "sh", "-c", script], cwd=directory, env=world.env, check=True)


def containers_in(directory: Path) -> int:
    return sum(1 for _ in directory.rglob(".iosig-container"))


def missing(program: Program) -> str:
    lacking = [n for n in program.needs.split() if not (Path(n).exists() if "/" in n else shutil.which(n))]
    return " ".join(lacking)


def compare(program: Program, way: str, world: World) -> tuple[bool, str]:
    """Whether it is the same as on plain files; what differs, or a note."""
    # All by the same name, which some programs write into their files.
    plain_above, other_above = world.directory(f"plain.{way}"), world.directory(f"other.{way}")
    plain, other = world.directory("work", plain_above), world.directory("work", other_above)
    inputs(world, plain)
    wanted = world.do(program, plain)
    note = ""
    if way == "run":
        before = (IOSIG, "run", "--container", f"{other}/*", "--container", f"{other}/*/*", "--")
        inputs(world, other, before)
        got = world.do(program, other, before)
        note = f"{containers_in(other)} containers"
    elif way == "mount":
        source = world.directory("source")
        world.iosig("mount", "--containers", "all", source, other)
        try:
            inputs(world, other)
            got = world.do(program, other)
        finally:
            subprocess.run(["sync", "-f", other], check=False)
            world.iosig("unmount", other)
        note = f"{containers_in(source)} containers"
    else:
        inputs(world, other)
        for name in program.outputs.split():
            world.iosig("prepare", "--storage", world.storage, other / name, "totalsize(4MB)")
        said, _ = world.do(program, other)
        redirected = sum((other / name).is_symlink() for name in program.outputs.split())
        for line in world.iosig("status").stdout.splitlines():
            if "orphan" in line:
                note = "orphans; "
        world.iosig("finalize", "--all")
        got = said, world.do(Program("", "", "true"), other)[1]
        note += f"{redirected} of {len(program.outputs.split())} redirected"
    if got == wanted:
        return True, note
    if got[0] != wanted[0]:
        return False, f"said {got[0][-200:]!r}, not {wanted[0][-200:]!r}"
    different = sorted(n for n in {**wanted[1], **got[1]} if wanted[1].get(n) != got[1].get(n))
    return False, f"different: {' '.join(different)}"


def main() -> int:
    rows, failures = [], 0
    for program in PROGRAMS:
        if len(sys.argv) > 1 and not any(word in program.name for word in sys.argv[1:]):
            continue
        if lacking := missing(program):
            print(f"{program.name}: needs {lacking}", file=sys.stderr)
            continue
        cells = []
        for way in WAYS:
            if way == "prepare" and not program.outputs:
                cells.append("no file of its own to redirect")
                continue
            scratch = Path(tempfile.mkdtemp(prefix="iosig-programs.", dir="/var/tmp"))
            fast = Path(tempfile.mkdtemp(prefix="iosig-programs.", dir="/dev/shm"))
            try:
                same, note = compare(program, way, World(scratch, fast))
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
                shutil.rmtree(fast, ignore_errors=True)
            if not same:
                failures += way not in program.differs
                print(f"{program.name}, {way}: {note}", file=sys.stderr)
            elif way in program.differs:
                print(f"{program.name}, {way}: is equal, though listed as different", file=sys.stderr)
            cells.append(f"identical ({note})" if same else program.differs.get(way, "DIFFERENT"))
        rows.append(f"| {program.name} | {' | '.join(cells)} |")
    print("| program | `iosig run` | `iosig mount` | `iosig prepare`, `finalize` |\n|---|---|---|---|", *rows, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
