"""`make install`, `make uninstall`, `make package`: a tree that can be moved, and one that goes away again."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, Iosig


def run(*words: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make package` makes, of the build under test."""
    if shutil.which("cpack") is None:
        pytest.skip("needs cpack")
    if not (BUILD / "libexec/iosig/iosig-fuse").exists() and shutil.which("fusermount3"):
        pytest.skip("the build is not complete")
    directory = tmp_path_factory.mktemp("packages")
    run("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", directory, "-G", "TGZ;DEB")
    return directory


def prefix_of(packages: Path, tmp_path: Path) -> Path:
    """The tarball, unpacked and moved."""
    [archive] = packages.glob("iosig-*.tar.gz")
    (tmp_path / "unpacked").mkdir()
    run("tar", "xzf", archive, "-C", tmp_path / "unpacked")
    [top] = (tmp_path / "unpacked").iterdir()
    return top.rename(tmp_path / "moved")


def test_the_tarball_works_where_it_is_unpacked(packages: Path, tmp_path: Path, iosig: Iosig) -> None:
    prefix = prefix_of(packages, tmp_path)
    iosig.binary = prefix / "bin/iosig"
    found = {finding["part"]: finding for finding in iosig.json("doctor", check=None)["findings"]}
    assert found["libraries"]["detail"] == str(prefix / "lib") and found["iosig run"]["state"] == "works"
    plugins = [finding for part, finding in found.items() if part.startswith("pragmas") and finding["state"] == "works"]
    assert [plugin["detail"] for plugin in plugins] == [str(so) for so in (prefix / "lib/iosig").glob("gcc-*/iosig.so")]


def test_the_modulefile_leads_to_the_tree_that_it_lies_in(packages: Path, tmp_path: Path) -> None:
    if shutil.which("tclsh") is None:
        pytest.skip("needs tclsh")
    prefix = prefix_of(packages, tmp_path)
    [module] = (prefix / "share/modulefiles/iosig").iterdir()
    script = tmp_path / "load.tcl"
    # What Environment Modules defines for a modulefile.
    script.write_text(
        "proc module-whatis {text} {}\nproc conflict {name} {}\n"
        f'proc prepend-path {{name value}} {{puts "$name $value"}}\nset ModulesCurrentModulefile {module}\n'
        f"source {module}\n"
    )
    paths = dict(line.split() for line in run("tclsh", script).stdout.splitlines())
    assert paths["PATH"] == str(prefix / "bin") and paths["CMAKE_PREFIX_PATH"] == str(prefix)
    assert (Path(paths["MANPATH"]) / "man1/iosig.1").exists() and (Path(paths["PKG_CONFIG_PATH"]) / "iosig.pc").exists()


def test_the_debian_package_names_what_it_needs(packages: Path, tmp_path: Path) -> None:
    if shutil.which("dpkg-deb") is None:
        pytest.skip("needs dpkg-deb")
    [package] = packages.glob("iosig_*.deb")
    assert "libc6" in run("dpkg-deb", "-f", package, "Depends").stdout
    run("dpkg-deb", "-x", package, tmp_path / "root")
    assert (tmp_path / "root/usr/bin/iosig").exists() and (tmp_path / "root/usr/lib/libiosig.so.1").exists()


def test_uninstall_removes_what_was_installed_and_nothing_else(tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    files = [prefix / name for name in ("bin/iosig", "lib/iosig/gcc-12/iosig.so", "share/modulefiles/iosig/0.1.0")]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    others = prefix / "bin/other tool"
    others.touch()
    manifest = tmp_path / "install_manifest.txt"
    manifest.write_text("\n".join(map(str, files)))  # as CMake writes it, without a last line end
    for _ in range(2):
        run(ROOT / "tools/uninstall", manifest)
        assert [path for path in prefix.rglob("*") if path.is_file()] == [others]
        assert not (prefix / "lib/iosig").exists() and not (prefix / "share/modulefiles").exists()
    (tmp_path / "install_manifest.txt.destdir").write_text("/stage")
    done = subprocess.run([ROOT / "tools/uninstall", manifest], capture_output=True, text=True)
    assert done.returncode == 2 and "had the DESTDIR '/stage', this call has ''" in done.stderr
    files[0].touch()
    staged = tmp_path / f"stage{files[0]}"
    staged.parent.mkdir(parents=True)
    staged.touch()
    (tmp_path / "install_manifest.txt.destdir").write_text(str(tmp_path / "stage"))
    run(ROOT / "tools/uninstall", manifest, env=os.environ | {"DESTDIR": str(tmp_path / "stage")})
    assert files[0].exists() and not staged.exists()
    done = subprocess.run([ROOT / "tools/uninstall", tmp_path / "none"], capture_output=True, text=True)
    assert done.returncode == 3 and "make install" in done.stderr
