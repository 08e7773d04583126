"""A file whose words did not all come out says so: in the service, on the page in amber, in the terminal, as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdp import cli
from cdp.base.workspace import Workspace
from cdp.corpus import looking
from cdp.services import corpora
from tests.corpus.packages import paragraph, word
from tests.pages.conftest import Open

UNKNOWN = "<w:p><m:r><m:t>Lost for it stands outside of any formula.</m:t></m:r></w:p>"


@pytest.mark.slow
def test_a_loss_stands_in_the_row_of_its_file_and_before_the_person(
    tmp_path: Path, workspace: Workspace, open_page: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    word(folder / "a.docx", paragraph("The crane lifts forty tonnes.") + UNKNOWN)
    word(folder / "b.docx", paragraph("The quay opens at six."))
    manifest = corpora.add(workspace, folder).corpus
    loss = "8 of 13 words (62%) did not come out: text (8)"
    assert [file.loss for file in manifest.files] == [loss, ""]
    assert looking.losses(manifest) == [f"a.docx: {loss}"]
    assert looking.problem(manifest) == "Words of 1 file are missing."

    at = open_page("documents", corpus=manifest.id)
    assert not at.exception
    assert "Words of 1 file are missing." in [warning.proto.title for warning in at.warning]
    [files] = [table.value for table in at.dataframe if "Missing" in table.value.columns]
    assert [list(found) for found in files["Missing"]] == [[loss], []]

    assert cli.main(["corpus", "add", str(folder), "--name", "again", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [file["missing"] for file in told["files"]] == [{"text": 8}, {}]
    assert cli.main(["corpus", "add", str(folder), "--name", "again"]) == 0
    assert f"a.docx: {loss}" in capsys.readouterr().out
