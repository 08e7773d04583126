"""Small files in the shape of public reports that lost text: what a person sees in each of them, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdp.corpus.reading import read_documents
from tests.corpus.files import read

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases" / "documents"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CASES.is_dir(), reason="the cases are not beside the repository"),
]


def text(name: str) -> str:
    return "\n".join(text for *_, text in read(CASES / name))


def test_content_controls_in_five_places() -> None:
    found = text("sdt.docx")
    places = [
        "COVERTITLE Harbour",
        "INLINECONTROL Maria of the port",
        "TABLEINSDT limit 40 t",
        "ROWINSDT wind",
        "CELLSDT hook",
    ]
    assert [found.count(place) for place in places] == [1] * 5
    assert sorted(map(found.index, places)) == list(map(found.index, places))


def test_tracked_changes() -> None:
    assert text("tracked.docx").split("\n\n") == [
        "The fee is INSERTED45 euros per berth.", "WHOLEINSERTED paragraph about night mooring.",
        "The quay opens at six in the morning.", "MOVED sentence about dogs.",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["table.docx", "odd.pptx"])
def test_cells_of_tables(name: str) -> None:
    assert "Team | Won | Drawn | Lost\nHarbour | 3 | 3 | 0\nMill |  | 2 | 1" in text(name)


def test_an_odd_slide() -> None:
    [(id, title, found)] = read(CASES / "odd.pptx")
    assert (id, title) == ("odd.pptx#p1-1", "odd › Quarter results")
    for seen in ("CHARTSERIES berths", "CHARTCAT north | 4", "GROUPED arrow", "NESTEDGROUP", "SPEAKERNOTE say"):
        assert found.count(seen) == 1
    assert found.index("TOPBOX") < found.index("BOTTOMBOX")
    assert "HIDDENSLIDE" not in found


def test_a_deck_of_short_slides() -> None:
    passages = read(CASES / "deck.pptx")
    assert [id for id, *_ in passages] == [f"deck.pptx#p{n}-{n}" for n in range(1, 13)]
    assert passages[6][1:] == ("deck › Fire drills", "The rule for fire drills is on board number 49.")


def test_nothing_is_missing() -> None:
    for path in sorted([*CASES.glob("*.docx"), *CASES.glob("*.pptx")]):
        with read_documents(path) as result:
            assert result.files[0].n_words
            assert not result.files[0].missing, path.name
