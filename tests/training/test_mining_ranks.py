"""Hard negatives come from the ranks that were asked for; of these the margin leaves some out, and says how many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cdp.training.mining import Miner, mine

OWN = 0.80
OTHERS = [0.95, 0.90, 0.85, 0.79, 0.78, 0.77, 0.75, 0.70, 0.65, 0.60, 0.55, 0.50]


class Cosines(Miner):
    """A retriever for which the query lies at these cosines from the documents, in their order."""

    def __init__(self, cosines: list[float], failed: tuple[str, ...] = ()) -> None:
        self.cosines, self.failed = np.array(cosines, np.float32), dict.fromkeys(failed, "").keys()

    def encode_document(self, texts: Any) -> Any:
        return np.stack([self.cosines, np.sqrt(1 - self.cosines**2)], axis=1)

    def encode_query(self, texts: Any) -> Any:
        return np.tile(np.array([1, 0], np.float32), (len(texts), 1))


CONTENTS = {"own": "own", **{f"{cosine:.2f}": f"text {cosine}" for cosine in OTHERS}}


@pytest.mark.parametrize(
    ("margin", "expected", "too_near"),
    [(None, ["0.85", "0.79", "0.78"], 0), (0.05, ["0.75", "0.70"], 4), (0.02, ["0.78", "0.77", "0.75"], 2)],
)
def test_ranks_are_chosen_before_the_margin(margin: float | None, expected: list[str], too_near: int) -> None:
    found = mine([("q", "own")], CONTENTS, Cosines([OWN, *OTHERS]), beside={}, negatives=3, ranks=(2, 8), margin=margin)
    assert found == ({"q": expected}, too_near)


def test_what_may_be_no_negative_has_no_rank() -> None:
    miner = Cosines([OWN, *OTHERS], failed=("text 0.9",))
    found = mine([("q", "own")], CONTENTS, miner, beside={"own": ["0.95", "elsewhere"]}, negatives=2, ranks=(1, 9),
                 margin=None)  # fmt: skip
    assert found.negatives == {"q": ["0.79", "0.78"]}


def test_a_negative_is_further_away_than_each_own_document() -> None:
    pairs = [("q", "own"), ("q", "0.70")]
    found = mine(pairs, CONTENTS, Cosines([OWN, *OTHERS]), beside={}, negatives=3, ranks=(0, 11), margin=0.05)
    assert found.negatives == {"q": ["0.65", "0.60", "0.55"]}
