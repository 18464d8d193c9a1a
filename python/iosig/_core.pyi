import builtins
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypedDict, overload

import numpy as np
import numpy.typing as npt

Model = Literal["mixed", "paper"]
Policy = Literal["job", "paper"]  # the least time of the whole job; the highest throughput
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
def choose(
    signature: str, storage: Storage, model: Model = "mixed", policy: Policy = "job", home: str | None = None
) -> dict[str, Any]: ...
def uncorrectable_bit_error_rate(ber: float, sector_bits: int, ecc_bits: int) -> float: ...
def chain_mttdl_s(storage: Storage, mount_point: str, size_bytes: int) -> float: ...
def eq2_mttdl_s(storage: Storage, mount_point: str, size_bytes: int) -> float: ...
def simulate_mttdl(
    storage: Storage, mount_point: str, size_bytes: int, seed: int = 1, precision: float = 0.05
) -> Simulation: ...

Columns = str | Sequence[str]  # names: "logical,length" or ["logical", "length"]

class Pattern:
    """A description without loss of a sequence of integers, or of vectors; never changes."""

    @property
    def count(self) -> int:
        """Of vectors; len() too."""

    @property
    def columns(self) -> int:
        """Of a vector, 1 to 8."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array that expand() gives."""

    @property
    def names(self) -> list[str]:
        """Of the columns, as detect() was told; [] where it was not."""

    @property
    def terms(self) -> int:
        """Nests, and blocks of literals."""

    @property
    def exceptions(self) -> int:
        """Single vectors that differ from what a nest says."""

    @property
    def bytes(self) -> int:
        """Of the binary form."""

    @property
    def follows(self) -> list[int | None]:
        """For each column the one whose running sum it is, or None."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Element]: ...
    @overload
    def __getitem__(self, position: int) -> Element: ...
    @overload
    def __getitem__(
        self, positions: slice | Sequence[int] | npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def expand(self) -> npt.NDArray[np.int64]:
        """All of it: an array of one dimension where there is one column, else a row for each vector."""

    def predict(self, count: int) -> npt.NDArray[np.int64]:
        """Up to `count` vectors that come next if the last nest goes on."""

    def text(self, columns: Columns = "") -> str:
        """Loops, strides and counts; `columns` are names to show, as of `iosig pattern detect --columns`."""

    def to_json(self) -> str:
        """As `iosig pattern detect --json` prints it."""

    @staticmethod
    def from_json(text: str, source: str = "description") -> Pattern:
        """What to_json() gave. source: what messages call the text."""

    def to_bytes(self) -> builtins.bytes:
        """The binary form, as `iosig pattern detect --output` writes it."""

    @staticmethod
    def from_bytes(data: builtins.bytes, source: str = "description") -> Pattern:
        """What to_bytes() gave. source: what messages call the data."""

class Detector:
    """Detection while the vectors come by: push them, ask what comes next, finish."""

    def __init__(
        self,
        columns: int | Columns = 1,
        follows: Sequence[int | None] = (),
        window: int = 32,
        allows_exceptions: bool = True,
    ) -> None: ...
    @property
    def columns(self) -> int:
        """Of a vector."""

    @property
    def count(self) -> int:
        """Vectors so far."""

    @property
    def confidence(self) -> float:
        """0 to 1 that the next vector is as predict() says; 0 where no nest runs."""

    def push(self, vectors: npt.NDArray[np.int64]) -> None:
        """One vector, or a row for each of many; all of them or none."""

    def predict(self, count: int = 1) -> npt.NDArray[np.int64]:
        """Up to `count` vectors that come next, as far as that can be said."""

    def finish(self) -> Pattern:
        """The pattern of what was pushed; the detector is as new."""

class Lookup:
    """Where the bytes of a logical file were written, by the pattern of its writes."""

    def __init__(self, pattern: Pattern, columns: Columns = "") -> None:
        """columns: names as of `iosig pattern lookup`; logical,length,physical,id, or the first three, unless given."""

    @property
    def size(self) -> int:
        """The end of the last byte written."""

    @property
    def memory_bytes(self) -> int:
        """That the lookup takes beside the pattern."""

    def find(self, offset: int, length: int) -> npt.NDArray[np.void]:
        """What `length` bytes from `offset` on are, in order: `logical`, `length`, `id`, `physical`, `is_hole` each.

        Where `is_hole` nobody wrote: these bytes read as zeros, and `id` and `physical` mean nothing.
        """

def detect(
    vectors: npt.NDArray[np.int64], columns: Columns = "", algorithm: Algorithm = "nest", window: int | None = None
) -> Pattern: ...
def merge(patterns: list[Pattern], ids: list[int]) -> tuple[Pattern, int]: ...
def parse_columns(columns: Columns) -> list[str]: ...

AccessLayer = Literal["mpi-io", "stdio", "posix"]
ACCESS_COLUMNS: list[str]
CALLS: list[tuple[str, AccessLayer, Literal["reads", "writes"] | None]]

class AccessStream:
    """Accesses as an Arrow stream, anew for each consumer."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Traces:
    """Traces that are read together."""

    def __init__(self, directories: Sequence[bytes]) -> None: ...
    @property
    def directories(self) -> list[str]: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def started_ns(self) -> int: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def processes(self) -> list[dict[str, Any]]: ...
    @property
    def counters(self) -> list[dict[str, Any]]: ...
    def stream(
        self,
        trace: int | None = None,
        layer: str | None = None,
        files: bytes | None = None,
        columns: Sequence[str] | None = None,
        rows: int = 65536,
    ) -> AccessStream: ...

def summarize_traces(
    directories: Sequence[bytes], files: bytes = b"", plotted: int = 12, most_files: int = 50
) -> dict[str, Any]:
    """What the traces have, for iosig.report; grids are encoded as core/iosig/observe/grid.h says."""

# Placement of regions and its simulation: iosig.contest has the dicts' words.
def place_regions(
    policy: str, world: dict[str, Any], workload: dict[str, Any], requests: int, options: dict[str, Any]
) -> tuple[npt.NDArray[np.uint64], list[list[int]]]: ...
def simulate_regions(
    world: dict[str, Any],
    workload: dict[str, Any],
    stripes: npt.NDArray[np.uint64],
    order: list[list[int]],
    movers: int,
    share: float,
    seed: int,
) -> dict[str, Any]: ...
def place_accesses(
    policy: str,
    world: dict[str, Any],
    processes: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.uint64],
    lengths: npt.NDArray[np.uint64],
    is_write: bool,
    region_bytes: int,
    options: dict[str, Any],
) -> tuple[npt.NDArray[np.uint64], list[list[int]]]: ...
def simulate_accesses(
    world: dict[str, Any],
    processes: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.uint64],
    lengths: npt.NDArray[np.uint64],
    is_write: bool,
    stripes: npt.NDArray[np.uint64],
    region_bytes: int,
    seed: int,
) -> dict[str, Any]: ...

class StripeServers:
    """Classes of equal servers: name, count, read and write (start-up, seconds per byte), capacity."""

    def __init__(
        self,
        classes: Sequence[tuple[str, int, tuple[float, float], tuple[float, float], int | None]],
        network: tuple[float, float],
        processes: int,
        processes_per_node: int,
    ) -> None: ...

Sizes = npt.NDArray[np.uint64]

def request_costs(
    servers: StripeServers, stripes: list[int], offsets: Sizes, lengths: Sizes, writes: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]: ...
def search_stripes(
    servers: StripeServers, offsets: Sizes, lengths: Sizes, writes: npt.NDArray[np.bool_], algorithm: str
) -> tuple[Sizes, float]: ...
def plan_regions(
    servers: StripeServers,
    starts: npt.NDArray[np.float64],
    offsets: Sizes,
    lengths: Sizes,
    writes: npt.NDArray[np.bool_],
    window_s: float,
    region_bytes: int,
    algorithm: str,
    is_together: bool,
) -> dict[str, npt.NDArray[Any]]: ...
def simulate_requests(
    servers: StripeServers,
    stripes: Sizes,
    processes: Sizes,
    offsets: Sizes,
    lengths: Sizes,
    writes: npt.NDArray[np.bool_],
    region_bytes: int,
) -> tuple[float, float, npt.NDArray[np.float64], npt.NDArray[np.float64]]: ...
def read_template(
    path: str, is_cxx: bool, include_directories: list[str], definitions: list[tuple[str, str]]
) -> dict[str, Any]: ...

# outputs, calls, memory pieces, file pieces, bytes: how much of each, or what each costs in seconds
TransferTerms = tuple[float, float, float, float, float, float]
# ranks, memory pieces, file pieces, bytes, spanned bytes
SharedTransfer = tuple[float, float, float, float, float]

def transfer_work(method: str, data_sets: list[SharedTransfer]) -> TransferTerms: ...
def transfer_seconds(work: TransferTerms, costs: TransferTerms) -> float: ...
def fitted_transfer_costs(measured: list[tuple[TransferTerms, float]]) -> TransferTerms: ...
