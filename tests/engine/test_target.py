"""How a target splits vectors that it does not have."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rulewright.engine.target import Target


@pytest.mark.parametrize(("lanes", "half"), [(96, 48), (24, 16), (16, 8), (12, 8), (6, 4), (3, 2), (2, 1), (40, 24)])
def test_half_is_a_multiple_of_the_widest_that_is_narrower(lanes: int, half: int) -> None:
    assert Target("t", widths=(8, 4, 2)).half(lanes) == half


@given(st.integers(2, 200), st.sampled_from([(), (2,), (4, 2), (8, 4, 2), (16, 8, 4, 2)]))
def test_both_parts_are_smaller(lanes: int, widths: tuple[int, ...]) -> None:
    assert 0 < Target("t", widths=widths).half(lanes) < lanes
