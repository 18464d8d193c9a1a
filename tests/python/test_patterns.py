"""iosig.patterns: arrays come back as they were, are found in the description, and bad ones are refused."""

from __future__ import annotations

import ast
import doctest
import inspect
import pickle
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iosig._core
import iosig.patterns
from conftest import ROOT, Iosig
from iosig.patterns import Detector, Lookup, Pattern, detect

ALL = "logical,length,physical,id"
Array = npt.NDArray[np.int64]


@pytest.fixture
def command(iosig: Iosig) -> Iosig:
    """The command, under a name that is not the package's."""
    return iosig


def n1_strided(ranks: int, writes: int, size: int) -> Array:
    """FS-TEST's accesses, a write of each rank in turn."""
    n = np.arange(ranks * writes)
    return np.stack([size * n, np.full(len(n), size), size * (n // ranks), n % ranks], axis=1)


NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 20)


@st.composite
def arrays(draw: st.DrawFn) -> Array:
    """Loops of loops, noise in them, and numbers without structure, one after the other."""
    columns = draw(st.integers(1, 4))
    parts = []
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            parts.append(np.array(draw(st.lists(st.tuples(*[NUMBERS] * columns), max_size=12)), np.int64))
            continue
        outer, inner = draw(st.integers(1, 12)), draw(st.integers(1, 12))
        strides = np.array(draw(st.tuples(*[st.tuples(*[st.integers(-(2**40), 2**40)] * 3)] * columns)))
        i, j = np.divmod(np.arange(outer * inner), inner)
        part = strides[:, 0] + i[:, None] * strides[:, 1] + j[:, None] * strides[:, 2]
        if draw(st.booleans()):
            part[draw(st.integers(0, len(part) - 1))] = draw(NUMBERS)
        parts.append(part)
    return np.concatenate([part.reshape(-1, columns) for part in parts] or [np.empty((0, columns), np.int64)])


@settings(max_examples=150, deadline=None)
@given(vectors=arrays(), algorithm=st.sampled_from(["nest", "paper"]), window=st.none() | st.integers(1, 40))
def test_what_was_detected_expands_to_what_was_given(vectors: Array, algorithm: Any, window: int | None) -> None:
    pattern = detect(vectors, algorithm=algorithm, window=window)
    flat = vectors.ravel() if vectors.shape[1] == 1 else vectors
    assert pattern.count == len(pattern) == len(vectors)
    assert pattern.columns == vectors.shape[1]
    np.testing.assert_array_equal(pattern.expand(), flat)
    assert pattern.expand().dtype == np.int64
    for again in (
        Pattern.from_bytes(pattern.to_bytes()),
        Pattern.from_json(pattern.to_json()),
        pickle.loads(pickle.dumps(pattern)),
    ):
        assert again == pattern and hash(again) == hash(pattern)
    assert pattern.bytes == len(pattern.to_bytes())


@settings(max_examples=150, deadline=None)
@given(
    vectors=arrays(), start=st.none() | st.integers(-300, 300), stop=st.none() | st.integers(-300, 300), data=st.data()
)
def test_a_pattern_is_read_as_its_array(
    vectors: Array, start: int | None, stop: int | None, data: st.DataObject
) -> None:
    pattern, whole = detect(vectors), vectors.ravel() if vectors.shape[1] == 1 else vectors
    step = data.draw(st.none() | st.integers(-7, 7).filter(bool))
    np.testing.assert_array_equal(pattern[start:stop:step], whole[start:stop:step])
    elements = whole.tolist() if whole.ndim == 1 else [tuple(vector) for vector in whole.tolist()]
    assert list(pattern) == elements
    if elements:
        positions = data.draw(st.lists(st.integers(-len(elements), len(elements) - 1), max_size=20))
        np.testing.assert_array_equal(pattern[np.array(positions, np.int64)], whole[np.array(positions, np.int64)])
        assert [pattern[k] for k in positions] == [elements[k] for k in positions]


@settings(max_examples=100, deadline=None)
@given(vectors=arrays(), cut=st.integers(0, 300))
def test_a_detector_that_is_fed_in_parts_finds_what_detect_finds(vectors: Array, cut: int) -> None:
    detector = Detector(vectors.shape[1])
    for _ in range(2):  # the second time with a detector that was used before
        detector.push(vectors[:cut])
        for vector in vectors[cut:]:
            detector.push(vector)
        assert detector.count == len(vectors)
        assert detector.finish() == detect(vectors)
        assert (detector.count, detector.confidence) == (0, 0)


def test_a_regular_file_is_one_term_whatever_its_length() -> None:
    vectors = n1_strided(64, 1000, 4096)
    pattern = detect(vectors, ALL)
    assert (pattern.terms, pattern.exceptions, pattern.count) == (1, 0, 64000)
    assert pattern.bytes <= 40
    assert str(pattern).startswith("for i < 1000\n  for j < 64\n")
    assert "logical 262144 i + 4096 j, length 4096" in pattern.text(ALL)
    assert repr(pattern).startswith("<iosig.Pattern: 64000 vectors of 4 columns, 1 term, ")


def test_the_physical_offset_of_varying_lengths_follows_them() -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, 2**17, 2000)
    vectors = np.stack([rng.integers(0, 2**40, 2000), lengths, np.cumsum(lengths) - lengths], axis=1)
    pattern = detect(vectors, "logical,length,physical")
    assert pattern.follows == [None, None, 1]
    assert detect(vectors).follows == [None, None, None]
    assert Detector(3, follows=[None, None, 1]).columns == 3
    np.testing.assert_array_equal(pattern.expand(), vectors)
    np.testing.assert_array_equal(pattern[::-7], vectors[::-7])


def test_few_bytes_may_stand_for_more_than_fits_anywhere() -> None:
    huge = Pattern.from_json(detect(range(10)).to_json().replace("10", str(2**60)))
    assert len(huge) == 2**60
    assert huge[2**59] == 2**59
    np.testing.assert_array_equal(huge[-2:], [2**60 - 2, 2**60 - 1])
    with pytest.raises((MemoryError, ValueError)):
        huge.expand()
    assert [number for number, _ in zip(huge, range(3), strict=False)] == [0, 1, 2]


def test_predictions_go_on_with_the_nest() -> None:
    vectors = n1_strided(4, 100, 512)
    pattern, more = detect(vectors[:200]), vectors[200:]
    np.testing.assert_array_equal(pattern.predict(200), more)
    detector = Detector(columns=4)
    assert detector.confidence == 0 and len(detector.predict(5)) == 0
    detector.push(vectors[:200])
    np.testing.assert_array_equal(detector.predict(10), more[:10])
    np.testing.assert_array_equal(detector.predict(), more[:1])
    sure = detector.confidence
    assert 0.9 < sure < 1
    detector.push([1, 1, 1, 1])
    assert detector.confidence == pytest.approx(sure / 2, rel=0.1)  # it may have been an exception
    assert detect([5, 3, 3, 9]).predict(3).shape == (0,)


def test_equal_patterns_are_equal_and_others_are_not() -> None:
    assert detect([1, 2, 3, 4]) == detect(np.arange(1, 5, dtype=np.uint8))
    assert detect([1, 2, 3, 4]) != detect([1, 2, 3, 5])
    assert detect([]) != "pattern" and len({detect([1]), detect([1]), detect([2])}) == 2


def test_the_command_and_the_module_find_the_same(command: Iosig) -> None:
    vectors = n1_strided(3, 50, 100)
    text = "".join(" ".join(map(str, vector)) + "\n" for vector in vectors.tolist())
    told = command("pattern", "detect", "--json", "--columns", ALL, "-", input=text).stdout
    assert Pattern.from_json(told) == detect(vectors, ALL)


def test_the_patterns_of_many_processes_fold_into_one() -> None:
    vectors = n1_strided(64, 200, 4096)
    ranks = [63 - rank for rank in range(64)]
    alone = [detect(vectors[vectors[:, 3] == rank][:, :3], "logical,length,physical") for rank in ranks]
    whole, interleaved = iosig.patterns.merge(alone, ranks)
    assert (whole.terms, whole.count, interleaved) == (1, len(vectors), 0)
    assert sorted(whole) == sorted(map(tuple, vectors.tolist()))
    # two that write the same byte at known times: the later one wins
    first, later = detect([[0, 8, 0, 5]]), detect([[4, 8, 0, 6]])
    pieces = Lookup(iosig.patterns.merge([later, first], [1, 2]).pattern).find(0, 12)
    assert pieces[["logical", "id"]].tolist() == [(0, 2), (4, 1)]


def test_lists_masks_and_arrays_of_any_integers_select_as_they_do_of_an_array() -> None:
    vectors = n1_strided(4, 10, 8)
    pattern = detect(vectors, ALL.split(","))
    mask = vectors[:, 3] == 2
    for positions in (
        [1, 2, 5],
        [],
        [-1],
        mask,
        mask.tolist(),
        np.array([3, 0], np.uint8),
        np.array([-1, 7], np.int16),
    ):
        np.testing.assert_array_equal(pattern[positions], vectors[positions])
    assert pattern[np.uint8(3)] == pattern[3]
    assert (pattern.shape, detect([7]).shape) == (vectors.shape, (1,))
    assert repr(detect([7])).startswith("<iosig.Pattern: 1 vector of 1 column, 1 term,")


def test_a_detector_with_names_checks_accesses_and_pushes_all_or_nothing() -> None:
    detector = Detector(["logical", "length"])
    with pytest.raises(ValueError, match="row 1: length -1 is negative"):
        detector.push([[0, 8], [8, -1]])
    assert detector.count == 0
    detector.push([[0, 8], [8, 8]])
    assert detector.finish().shape == (2, 2)


def test_the_stubs_say_what_the_extension_says() -> None:
    stubs = ast.parse((ROOT / "python" / "iosig" / "_core.pyi").read_text())
    told = 0
    for kind in (node for node in stubs.body if isinstance(node, ast.ClassDef)):
        for node in kind.body:
            if isinstance(node, ast.FunctionDef) and (doc := ast.get_docstring(node)):
                theirs = inspect.getdoc(getattr(getattr(iosig._core, kind.name), node.name)) or ""
                assert theirs.endswith(doc), f"{kind.name}.{node.name}"
                told += 1
    assert told > 20


# --- lookup -----------------------------------------------------------------------------------------------------------


def test_lookup_agrees_with_a_file_of_bytes() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        vectors = n1_strided(4, 50, 16)
        noisy = rng.random(len(vectors)) < 0.1
        vectors[noisy, 0] = rng.integers(0, 4000, noisy.sum())
        vectors[noisy, 1] = rng.integers(0, 40, noisy.sum())
        expected = np.full((5000, 2), -1)
        for logical, length, physical, rank in vectors.tolist():
            expected[logical : logical + length] = [[rank, physical + n] for n in range(length)] or expected[:0]
        lookup = Lookup(detect(vectors, ALL))
        assert lookup.size == max(logical + length for logical, length, *_ in vectors.tolist() if length)
        found = np.full((5000, 2), -1)
        end = 0
        for piece in lookup.find(0, 5000):
            assert piece["logical"] == end
            end += piece["length"]
            if not piece["is_hole"]:
                at = np.arange(piece["length"])
                found[piece["logical"] : end] = np.stack(
                    [np.full(len(at), piece["id"]), piece["physical"] + at], axis=1
                )
        np.testing.assert_array_equal(found, expected)


def test_a_lookup_keeps_its_pattern_and_names_the_columns() -> None:
    vectors = n1_strided(4, 100, 4096)[:, [3, 2, 1, 0]]
    pieces = Lookup(detect(vectors), "id,physical,length,logical").find(40000, 6000)
    assert pieces.tolist() == [
        (40000, 960, 1, 11328, False),
        (40960, 4096, 2, 8192, False),
        (45056, 944, 3, 8192, False),
    ]
    assert pieces["is_hole"].dtype == bool
    assert Lookup(detect(vectors), "id,physical,length,logical").memory_bytes > 0


# --- bad input --------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: detect([1.5]), TypeError, "array of integers from -2^63 to 2^63 - 1, got float64"),
    (lambda: detect(["1"]), TypeError, "got <U1"),
    (lambda: detect([True]), TypeError, "got bool"),
    (lambda: detect([2**64]), TypeError, "got object"),
    (lambda: detect(np.array([[1, 2], [3, 2**63]], np.uint64)), ValueError, "row 1: 9223372036854775808 does not fit"),
    (lambda: detect(np.zeros((2, 2, 2), int)), ValueError, "one or two dimensions, got an array of shape (2, 2, 2)"),
    (lambda: detect(np.zeros((2, 9), int)), ValueError, "columns: expected 1 to 8, got 9"),
    (lambda: detect(np.zeros((2, 0), int)), ValueError, "columns: expected 1 to 8, got 0"),
    (lambda: detect(np.zeros((2, 3), int), "logical"), ValueError, "1 names for 3 columns"),
    (lambda: detect([1], "lenght"), ValueError, "did you mean 'length'"),
    (lambda: detect([[1, 1], [1, -1]], "logical,length"), ValueError, "row 1: length -1 is negative"),
    (
        lambda: detect([[2**63 - 1, 1]], "logical,length"),
        ValueError,
        "row 0: logical 9223372036854775807 and length 1 end",
    ),
    (lambda: detect([1], algorithm="magic"), ValueError, "algorithm must be 'nest' or 'paper', got 'magic'"),  # type: ignore[arg-type]
    (lambda: detect([1], window=0), ValueError, "window: expected 1 to 1024, got 0"),
    (lambda: detect([1, 2])[2], IndexError, "position 2 is not in a pattern of 2 vectors"),
    (lambda: detect([1, 2])[np.array([0, -3])], IndexError, "position -3"),
    (lambda: detect([1, 2])[[0.5]], TypeError, "or of a mask, got float64"),  # type: ignore[list-item]
    (lambda: detect([1, 2])["a"], TypeError, "expected an integer, a slice"),  # type: ignore[call-overload]
    (lambda: detect([1, 2])[0, 1], TypeError, "got a tuple"),  # type: ignore[call-overload]
    (lambda: detect([1, 2])[None], TypeError, "got 0 dimensions"),  # type: ignore[call-overload]
    (lambda: detect([1, 2])[[[0]]], TypeError, "got 2 dimensions"),  # type: ignore[list-item]
    (lambda: detect([1, 2])[[True]], IndexError, "a mask of 1 for a pattern of 2 vectors"),
    (lambda: detect([7])[2**64], IndexError, "position 18446744073709551616 is not in a pattern of 1 vector"),
    (lambda: detect([1, 2])[np.array([2**63], np.uint64)], IndexError, "position 9223372036854775808"),
    (lambda: detect([1], columns=5), TypeError, "['logical', 'length'], got 5"),  # type: ignore[arg-type]
    (lambda: detect([[1, 2]], ["logical"]), ValueError, "1 names for 2 columns"),
    (lambda: detect([1, 2]).predict(-1), ValueError, "count: expected 0 or more, got -1"),
    (lambda: detect(range(9)).predict(2**60), (MemoryError, ValueError), ""),  # type: ignore[list-item]
    (lambda: Detector(0), ValueError, "columns: expected 1 to 8, got 0"),
    (lambda: Detector(2.5), TypeError, "columns: expected names"),  # type: ignore[arg-type]
    (lambda: Detector(None), TypeError, "columns: expected names"),  # type: ignore[arg-type]
    (lambda: Detector("logical,lenght"), ValueError, "did you mean 'length'"),
    (lambda: Detector(2, follows=[None]), ValueError, "an entry for each of 2 columns, got 1"),
    (lambda: Detector(2, follows=[1, 0]), ValueError, "column 0 cannot follow 1"),
    (lambda: Detector(2).push([1, 2, 3]), ValueError, "expected rows of 2 columns, got an array of shape (3,)"),
    (lambda: Detector(2).push([[1, 2, 3]]), ValueError, "expected 2 columns, got an array of shape (1, 3)"),
    (lambda: iosig.patterns.merge([detect([1, 2])]), ValueError, "process 0: a pattern of 1 column"),
    (lambda: iosig.patterns.merge([detect([[1, 2, 3]])], [1, 2]), ValueError, "ids: 2 ids for 1 patterns"),
    (lambda: iosig.patterns.merge([None]), TypeError, "None"),  # type: ignore[list-item]
    (lambda: Lookup(detect([1, 2])), ValueError, "a lookup in a pattern of 1 column"),
    (lambda: Lookup(detect([[1, 2]]), "logical,length"), ValueError, "a lookup needs logical, length and physical"),
    (lambda: Lookup(detect([[1, 2, 3]])).find(-1, 2), ValueError, "got -1 and 2"),
    (
        lambda: Lookup(detect([[1, 2, 3]])).find(0, 2**63),
        ValueError,
        "length: 9223372036854775808 does not fit 64 bits",
    ),
    (lambda: Lookup(detect([[1, 2, 3]])).find(0.5, 1), TypeError, "offset: expected an integer, got 0.5"),  # type: ignore[arg-type]
    (lambda: Pattern.from_bytes(b"IOP"), ValueError, "description: byte "),
    (lambda: Pattern.from_json("{"), ValueError, "not a JSON object"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_bad_arguments_are_refused_by_name(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as told:
        call()
    assert message in str(told.value)


@given(data=st.binary(max_size=60) | st.binary(max_size=60).map(lambda tail: b"IOP\x01" + tail))
def test_any_bytes_are_a_pattern_or_a_value_error(data: bytes) -> None:
    try:
        assert Pattern.from_bytes(data).count >= 0
    except ValueError as error:
        assert "description: byte " in str(error)


# --- arrays of all kinds ----------------------------------------------------------------------------------------------


def test_arrays_of_any_layout_are_read_and_contiguous_ones_are_not_copied() -> None:
    vectors = n1_strided(4, 60, 64)
    wanted = detect(vectors)
    wide = np.zeros((240, 9), np.int64)
    wide[:, 1::2] = vectors
    for same in (
        np.asfortranarray(vectors),
        wide[:, 1::2],
        vectors.astype(">i8"),
        vectors.astype(np.uint16),
        vectors.tolist(),
    ):
        assert detect(same) == wanted
    assert detect(vectors[::-1]).expand().tolist() == vectors[::-1].tolist()
    vectors.flags.writeable = False
    assert detect(vectors) == wanted
    assert iosig.patterns.as_vectors(vectors) is vectors


def test_threads_share_a_detector_without_losing_a_vector() -> None:
    detector = Detector()
    threads = [threading.Thread(target=lambda: [detector.push(range(100)) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(detector.finish().expand().tolist()) == sorted(list(range(100)) * 200)


def test_the_pages_examples_are_what_comes_out() -> None:
    page = (ROOT / "docs" / "howto" / "patterns.md").read_text()
    text = "".join(re.findall(r"^```pycon\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    assert text.count(">>> ") > 10
    names: dict[str, object] = {"np": np, "patterns": iosig.patterns}
    for source, name in ((text, "patterns.md"), (iosig.patterns.__doc__ or "", "iosig.patterns")):
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        assert runner.run(doctest.DocTestParser().get_doctest(source, dict(names), name, None, 0)).failed == 0
