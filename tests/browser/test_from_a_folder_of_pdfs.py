"""A folder of PDFs chosen in the browser becomes passages, with a password where one needs it; Decide knows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cdp.corpus import iter_documents
from cdp.services import corpora
from tests.browser.conftest import Looker, Server
from tests.corpus.test_office_files import pdf, scanned

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_from_a_folder_of_pdfs_to_decide(
    serve: Callable[..., Server], look: Callable[..., Looker], tmp_path: Path
) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    for n in range(3):
        pdf(folder / f"report {n}.pdf", running=n > 0)
    scanned(folder / "scan.pdf")
    pdf(folder / "secret.pdf", password="geheim")
    server = serve()
    tab = look(server)
    tab.open("documents").press("Folder", role="radio")
    box = tab.page.get_by_test_id("stMain").get_by_test_id("stFileUploader").locator("input[type=file]")
    box.set_input_files(folder)
    tab.idle().see("Passages").see("Words of a passage")
    tab.see("Protected by a password: secret.pdf").type("Password of PDFs", "falsch").see("does not open secret.pdf")
    # Tab moves to the field's own button; what was typed must not be lost.
    tab.type("Password of PDFs", "geheim").page.get_by_text("does not open").wait_for(state="hidden")
    tab.press("Import documents").see("1 of 5 files could not be read").see("run OCR first")
    [corpus] = corpora.list_corpora(server.workspace)
    assert (corpus.name, corpus.n_files, corpus.n_files_failed, corpus.unit) == ("reports", 4, 1, "passage")
    ids = {document.id.split("#")[0] for document in iter_documents(server.workspace, corpus.id)}
    assert ids == {*(f"report {n}.pdf" for n in range(3)), "secret.pdf"}
    tab.menu("Decide").see("reports")
