import builtins
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypedDict, overload

import numpy as np
import numpy.typing as npt

Model = Literal["mixed", "paper"]
Algorithm = Literal["nest", "paper"]
Element = int | tuple[int, ...]  # of one column, of several

class Prediction(TypedDict):
    throughput_bytes_per_s: float
    operation_s: float
    limit: str

class Simulation(TypedDict):
    mttdl_s: float
    ci95_low_s: float
    ci95_high_s: float
    losses: int

class MountPoint:
    @property
    def path(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def filesystem(self) -> str: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def free_bytes(self) -> int | None: ...
    @property
    def persistent(self) -> bool: ...
    @property
    def is_global(self) -> bool: ...

class Storage:
    @property
    def mount_points(self) -> list[MountPoint]: ...

def parse_signature(text: str) -> str: ...
def read_storage(path: str) -> Storage: ...
def find_storage() -> str | None: ...
def predict(signature: str, storage: Storage, mount_point: str, model: Model = "mixed") -> Prediction: ...
def choose(signature: str, storage: Storage, model: Model = "mixed") -> dict[str, Any]: ...
def uncorrectable_bit_error_rate(ber: float, sector_bits: int, ecc_bits: int) -> float: ...
def chain_mttdl_s(storage: Storage, mount_point: str, size_bytes: int) -> float: ...
def eq2_mttdl_s(storage: Storage, mount_point: str, size_bytes: int) -> float: ...
def simulate_mttdl(
    storage: Storage, mount_point: str, size_bytes: int, seed: int = 1, precision: float = 0.05
) -> Simulation: ...

class Pattern:
    """A description without loss of a sequence of integers, or of vectors; never changes."""

    @property
    def count(self) -> int:
        """Of vectors; len() too."""

    @property
    def columns(self) -> int: ...
    @property
    def names(self) -> list[str]:
        """Of the columns, as detect() was told; [] where it was not."""

    @property
    def terms(self) -> int:
        """Nests, and blocks of literals."""

    @property
    def exceptions(self) -> int: ...
    @property
    def bytes(self) -> int:
        """Of the binary form."""

    @property
    def follows(self) -> list[int | None]:
        """For each column the one whose running sum it is."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Element]: ...
    @overload
    def __getitem__(self, position: int) -> Element: ...
    @overload
    def __getitem__(self, positions: slice | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def expand(self) -> npt.NDArray[np.int64]:
        """All of it: an array of one dimension where there is one column, else a row for each vector."""

    def predict(self, count: int) -> npt.NDArray[np.int64]:
        """Up to `count` vectors that come next if the last nest goes on."""

    def text(self, columns: str = "") -> str:
        """Loops, strides and counts; `columns` are names to show, as of `iosig pattern detect --columns`."""

    def to_json(self) -> str: ...
    @staticmethod
    def from_json(text: str, source: str = "description") -> Pattern: ...
    def to_bytes(self) -> builtins.bytes: ...
    @staticmethod
    def from_bytes(data: builtins.bytes, source: str = "description") -> Pattern: ...

class Detector:
    def __init__(
        self,
        columns: int = 1,
        follows: Sequence[int | None] = (),
        window: int = 32,
        allows_exceptions: bool = True,
    ) -> None: ...
    @property
    def columns(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def confidence(self) -> float: ...
    def push(self, vectors: npt.NDArray[np.int64]) -> None: ...
    def predict(self, count: int = 1) -> npt.NDArray[np.int64]: ...
    def finish(self) -> Pattern: ...

class Lookup:
    """Where the bytes of a logical file were written, by the pattern of its writes."""

    def __init__(self, pattern: Pattern, columns: str = "") -> None:
        """columns: names as of `iosig pattern lookup`; logical,length,physical,id, or the first three, unless given."""

    @property
    def size(self) -> int:
        """The end of the last byte written."""

    @property
    def memory_bytes(self) -> int: ...
    def find(self, offset: int, length: int) -> npt.NDArray[np.void]:
        """What `length` bytes from `offset` on are, in order: `logical`, `length`, `id`, `physical`, `is_hole` each."""

def detect(
    vectors: npt.NDArray[np.int64], columns: str = "", algorithm: Algorithm = "nest", window: int | None = None
) -> Pattern: ...
def merge(patterns: list[Pattern], ids: list[int]) -> tuple[Pattern, int]: ...
def parse_columns(text: str) -> list[str]: ...
