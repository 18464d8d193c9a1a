"""What `iosig plan --plot FILE` draws."""

from __future__ import annotations

import json

import pytest
from matplotlib.figure import Figure

from iosig import plan_picture


def plan() -> str:
    def placed(requests: int, *stripes: int) -> dict[str, object]:
        return {"stripe_bytes": stripes, "requests": requests}

    return json.dumps(
        {
            "schema": "iosig.plan/1",
            "servers": {"home": 0, "classes": [{"name": "hdd"}, {"name": "ssd"}]},
            "regions": [{}, {}, {}],
            "windows": [
                {"placements": [placed(5, 65536, 0), placed(70, 0, 100), placed(0, 1 << 20, 3 << 19)]},
                {"placements": [placed(9, 0, 100), placed(1, 65536, 0), placed(2, 65536, 0)]},
            ],
        }
    )


def test_regions_are_where_the_plan_puts_them() -> None:
    told = plan_picture.read_plan(plan())
    regions = plan_picture.regions_of(told)
    assert regions["requests"].sum() == 87
    assert list(regions["place"]) == ["hdd", "ssd", "hdd+ssd", "ssd", "hdd", "hdd"]
    assert regions["stripes"][2] == "1MB on hdd, 1536KB on ssd" and regions["stripes"][1] == "100B on ssd"
    places = plan_picture.places_of(told, regions)
    assert places == ["hdd", "ssd", "hdd+ssd"]
    assert plan_picture.place_numbers(places, regions).tolist() == [[0, 1, 2], [1, 0, 0]]


def test_the_picture_has_a_cell_for_each_window_and_region() -> None:
    told = plan_picture.read_plan(plan())
    heat, where = Figure().subplots(2)
    plan_picture.plot_plan((heat, where), told)
    assert heat.images[0].get_array().shape == where.images[0].get_array().shape == (2, 3)
    figure = plan_picture.explore_plan(told)
    assert [len(trace.z) for trace in figure.data] == [2, 2] and figure.data[1].text[0][2].endswith("on ssd")
    with pytest.raises(ValueError, match=r"iosig\.plan/1"):
        plan_picture.read_plan('{"schema": "iosig.query/1"}')
