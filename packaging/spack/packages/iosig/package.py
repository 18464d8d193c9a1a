"""The Spack recipe of IOSIG, which builds the clone that holds it:

spack repo add packaging/spack
spack install iosig
"""

from pathlib import Path

from spack.package import depends_on, license, variant, version

try:
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:  # Spack before 1.0
    from spack.package import CMakePackage


class Iosig(CMakePackage):
    """Put every stream's bytes on the storage that serves them best.

    Pragmas, rules or traces say what a stream of bytes is for; IOSIG chooses the mount point, redirects the stream
    there and brings it home. With a GCC plugin and libraries for programs without source.
    """

    git = Path(__file__).resolve().parents[4].as_uri()
    license("GPL-3.0-or-later")
    version("main", branch="main")

    variant("plugin", default=True, description="the plugin for the GCC in use, which must have plugin headers")
    variant("fuse", default=True, description="iosig mount")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("cli11@2.3:", type="build")
    depends_on("fmt@9:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("tl-expected", type="build")
    depends_on("tomlplusplus@3.3:", type="build")
    depends_on("nettle@3.4:")
    depends_on("zlib-api")
    depends_on("bzip2")
    depends_on("sqlite")
    depends_on("libfuse@3.12:", when="+fuse")

    generator = "Ninja"

    def cmake_args(self) -> list[str]:
        return [
            self.define("IOSIG_TESTS", False),
            self.define_from_variant("IOSIG_GCC_PLUGIN", "plugin"),
            self.define("IOSIG_OTHER_GCC", ""),  # only the compiler of the spec
        ]
