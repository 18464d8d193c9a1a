"""The pictures of `iosig query --plot FILE` show what the answers say."""

from __future__ import annotations

import html
import json
import math
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from iosig import figures, query_picture


def answer(question: str, rows: list[dict[str, Any]], **more: object) -> dict[str, Any]:
    return query_picture.read_answer(json.dumps({"question": question, **more, "rows": rows}))


def test_a_histogram_has_each_call_in_the_bin_of_its_duration() -> None:
    histogram = [[1e-6, 5], [1.1e-6, 2], [0.5, 1]]
    points = query_picture.points_of(answer("latency", [{"layer": "posix", "calls": 9, "histogram": histogram}]))
    assert points["y"].sum() == 8 and set(points["name"]) == {"posix"}
    for middle, calls in ((1e-6, 7), (0.5, 1)):  # 1 and 1.1 us share a quarter of an octave
        below = points[points["x"] <= middle * 1.0001].iloc[-1]
        assert below["y"] == calls and below["x"] * 2**0.25 > middle


def test_quiet_windows_are_zero_and_unknown_numbers_are_no_bars() -> None:
    rows = [
        {"layer": "posix", "window_start_s": 0.5, "calls": 1, "wall_bytes_per_s": 8.0},
        {"layer": "posix", "window_start_s": 1.5, "calls": 1, "wall_bytes_per_s": 4.0},
    ]
    points = query_picture.points_of(answer("throughput", rows, window_s=0.5))
    assert list(points["y"]) == [0, 8, 0, 4, 0] and list(points["x"]) == [0, 0.5, 1, 1.5, 2]
    energies = query_picture.points_of(
        answer("power", [{"file": "a", "calls": 1, "energy_j": 3}, {"file": None, "calls": 2, "energy_j": None}])
    )
    assert list(energies["name"]) == ["a", "-"] and energies["y"][0] == 3 and math.isnan(energies["y"][1])


def test_every_question_with_a_picture_is_drawn() -> None:
    for question, (field, _) in query_picture.DRAWN.items():
        row = {"layer": "posix", "calls": 4, field: 4.0, "histogram": [[1e-3, 4]]}
        told = answer(question, [row])
        axes = Figure().subplots()
        query_picture.plot_answer(axes, told)
        assert axes.has_data() and query_picture.explore_answer(told).data
        query_picture.plot_answer(Figure().subplots(), answer(question, []))


def test_windows_years_apart_make_few_points() -> None:
    rows = [{"layer": "posix", "window_start_s": at, "calls": 1, "wall_bytes_per_s": 8.0} for at in (1, 3e9)]
    points = query_picture.points_of(answer("throughput", rows, window_s=0.5))
    assert list(points["x"]) == [0, 1, 1.5, 3e9, 3e9 + 0.5] and list(points["y"]) == [0, 8, 0, 8, 0]


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    names = [r"/d/$\frac{$", "/d/a$b$c", "/d/<b>bold & <a href='https://x'>"]
    for question, more in (("calls", {}), ("throughput", {"window_s": 1.0})):
        field = query_picture.DRAWN[question][0]
        rows = [{"file": name, "window_start_s": 0.0, "calls": 4, field: 4.0} for name in names]
        told = answer(question, rows, **more)
        drawn = Figure()
        query_picture.plot_answer(drawn.subplots(), told)
        figures.write_picture(tmp_path / "drawn.png", drawn, names[0])  # as a formula, it would have a mistake
        axes = drawn.axes[0]
        legend = axes.get_legend()
        texts = axes.get_yticklabels() if legend is None else legend.get_texts()
        assert [text.get_text().replace(r"\$", "$") for text in texts] == names
        data = query_picture.explore_answer(told).data
        explored = list(data[0].y) if question == "calls" else [each.name for each in data]
        assert [html.unescape(each) for each in explored] == names and not any("<" in each for each in explored)


def test_what_is_no_answer_is_refused() -> None:
    for text in ("[]", '{"schema": "iosig.choice/1"}', '{"question": "touched", "rows": []}', '{"question": "calls"}'):
        with pytest.raises(ValueError):
            query_picture.read_answer(text)
