"""The one import on the Corpus page: a look at three rows, columns from dropdowns, and a project of it all."""

from __future__ import annotations

from pathlib import Path

from reportlab.pdfgen.canvas import Canvas
from streamlit.testing.v1 import AppTest

from cdp.base.workspace import Workspace
from cdp.corpus import iter_documents, list_corpora
from cdp.services import corpora, projects, queries
from cdp.ui.shell.frame import PAGES
from tests.pages.conftest import Open

ROWS = [f"{i},Lighthouse {i} was built in {1800 + i} on the coast.,When was {i} built?,x" for i in range(30)]


def faq(folder: Path) -> bytes:
    path = folder / "faq.csv"
    path.write_text("\n".join(["number,what it says,question,colour", *ROWS]) + "\n", encoding="utf-8")
    return path.read_bytes()


def test_an_upload_becomes_a_project(workspace: Workspace, tmp_path: Path, open_page: Open) -> None:
    at = open_page("documents")
    at.file_uploader(key="corpus_file").upload("faq.csv", faq(tmp_path), "text/csv").run()
    assert not at.error
    boxes = {box.label: box for box in at.selectbox}
    assert [boxes[name].value for name in ("ID", "Title", "Text", "Queries")] == [
        "none", "none", "what it says", "question",
    ]  # fmt: skip
    assert len(at.dataframe[0].value) == 3
    boxes["ID"].set_value("number").run()
    at.text_input(key="corpus_name").set_value("Lights").run()
    at.button(key="corpus_add").click().run()
    assert not at.error
    assert not at.exception
    [project] = projects.list_projects(workspace)
    assert (project.name, len(project.corpora), len(project.benchmarks)) == ("Lights", 1, 1)
    assert at.query_params["project"] == project.id
    assert at.query_params["corpus"] == project.corpora[0]
    assert at.main.caption[0].value.endswith("**Lights**")
    assert at.success[0].proto.title.startswith("Lights was added")
    said = at.success[0].value
    assert "dev 30" in said
    assert "All 30 queries are for measuring" in said
    assert "colour" in said
    assert queries.list_query_sets(workspace) == []
    assert not at.dataframe or "what it says" not in at.dataframe[0].value.columns, "the form is empty again"


def test_no_questions_and_no_titles_where_none_are_chosen(workspace: Workspace, open_page: Open) -> None:
    at = open_page("documents")
    rows = "\n".join(["id,title,text,question", *(f"{i},Name {i},Lighthouse {i} is here.,Is {i}?" for i in range(5))])
    at.file_uploader(key="corpus_file").upload("x.csv", rows.encode(), "text/csv").run()
    boxes = {box.label: box for box in at.selectbox}
    assert (boxes["Title"].value, boxes["Queries"].value) == ("title", "question")
    boxes["Title"].set_value("none")
    boxes["Queries"].set_value("none").run()
    at.button(key="corpus_add").click().run()
    assert not at.error
    assert queries.list_query_sets(workspace) == []
    assert "No judged queries" in at.success[0].value
    [project] = projects.list_projects(workspace)
    assert {d.title for d in iter_documents(workspace, project.corpora[0])} == {""}


def test_a_file_of_questions_that_names_documents_by_text(workspace: Workspace, open_page: Open) -> None:
    texts = [f"Lighthouse {i} stands on the coast." for i in range(12)]
    rows = "\n".join(["_id,text", *(f"d{i},{text}" for i, text in enumerate(texts))])
    asked = "\n".join(["query,text", *(f"where is {i}?,{text}" for i, text in enumerate(texts))])
    at = open_page("documents")
    uploader = at.file_uploader(key="corpus_file")
    uploader.upload("docs.csv", rows.encode(), "text/csv").upload("asked.csv", asked.encode(), "text/csv").run()
    assert not at.error
    boxes = {box.label: box.value for box in at.selectbox}
    assert [boxes[name] for name in ("Queries", "Document ID")] == ["query", "text"]
    at.button(key="corpus_add").click().run()
    assert not at.error
    assert "dev 12" in at.success[0].value
    [corpus] = list_corpora(workspace)
    assert corpus.n_documents == 12


def test_documents_and_a_file_of_questions(workspace: Workspace, tmp_path: Path, open_page: Open) -> None:
    rows = "\n".join(["_id,text", *(f"d{i},Lighthouse {i} on the coast." for i in range(12))])
    questions = [f"where is {i}?,d{i},{'train' if i % 2 else 'test'}" for i in range(12)]
    asked = "\n".join(["query,doc_id,split", *questions])
    at = open_page("documents")
    uploader = at.file_uploader(key="corpus_file")
    uploader.upload("docs.csv", rows.encode(), "text/csv").upload("asked.csv", asked.encode(), "text/csv").run()
    assert not at.error
    boxes = {box.label: box.value for box in at.selectbox}
    assert [boxes[name] for name in ("Queries", "Document ID", "Split", "Grade")] == [
        "query", "doc_id", "split", "none",
    ]  # fmt: skip
    at.button(key="corpus_add").click().run()
    assert not at.error
    [project] = projects.list_projects(workspace)
    assert len(project.benchmarks) == 1
    [own] = queries.list_query_sets(workspace)
    assert own.n_queries == 6


def test_a_second_import_joins_a_project(filled: Workspace, tmp_path: Path, open_page: Open) -> None:
    at = open_page("documents", project="demo")
    at.file_uploader(key="corpus_file").upload("faq.csv", faq(tmp_path), "text/csv").run()
    next(group for group in at.button_group if group.key == "corpus_project").set_value("demo").run()
    at.button(key="corpus_add").click().run()
    assert not at.error
    assert len(projects.list_projects(filled)) == 1
    assert len(projects.resolve(filled, "demo").corpora) == 2


def test_a_file_that_is_none_is_one_calm_box(workspace: Workspace, open_page: Open) -> None:
    at = open_page("documents")
    at.file_uploader(key="corpus_file").upload("broken.parquet", b"PAR1 no", "application/octet-stream").run()
    assert not at.exception
    assert len(at.error) == 1
    assert PAGES["documents"].title == at.title[0].value


def test_a_folder_comes_in_with_its_folders(workspace: Workspace, open_page: Open) -> None:
    at = open_page("documents")
    at.segmented_control(key="corpus_way").set_value("Folder").run()
    uploader = at.file_uploader(key="corpus_folder")
    for i in range(3):
        uploader.upload(f"sea/part {i}/a.txt", f"A note on light {i}.".encode(), "text/plain")
    uploader.upload("sea/map.bin", b"\0\1", "application/octet-stream").run()
    assert not at.error
    assert "map\\.bin" in "".join(caption.value for caption in at.caption)
    at.button(key="corpus_add").click().run()
    assert not at.error
    [project] = projects.list_projects(workspace)
    assert project.name == "sea"
    assert not at.success
    assert "map\\.bin\\: this format is not read" in at.warning[0].value
    assert "1 of 4 files could not be read" in at.warning[0].proto.title
    assert "3 documents" in at.info[0].proto.title


def test_how_a_text_is_cut_is_shown_before_it_is_stored(workspace: Workspace, open_page: Open) -> None:
    at = open_page("documents")
    text = " ".join(f"Sentence {n} of a long note about lighthouses at sea." for n in range(200))
    at.file_uploader(key="corpus_file").upload("note.txt", text.encode(), "text/plain").run()
    assert any("passages in the part" in caption.value for caption in at.caption)
    at.select_slider(key="corpus_passages").set_value(0).run()
    captions = " ".join(caption.value for caption in at.caption)
    assert "by passage" not in captions
    assert "by file" in captions
    at.select_slider(key="corpus_passages").set_value(100).run()
    assert any(
        "25 passages in the part that was looked at, of 80 to 100 words" in caption.value for caption in at.caption
    )
    assert not projects.list_projects(workspace)
    at.button(key="corpus_add").click().run()
    assert not at.error
    [project] = projects.list_projects(workspace)
    documents = list(iter_documents(workspace, project.corpora[0]))
    assert documents[1].id == "note.txt#2"
    assert max(len(document.text.split()) for document in documents) <= 100


def folder_of(at: AppTest, files: dict[str, bytes]) -> AppTest:
    at.segmented_control(key="corpus_way").set_value("Folder").run()
    uploader = at.file_uploader(key="corpus_folder")
    for name, data in files.items():
        uploader.upload(name, data, "application/octet-stream")
    return uploader.run()


def test_files_of_any_ending_are_taken_and_named(workspace: Workspace, open_page: Open) -> None:
    at = open_page("documents")
    assert not at.file_uploader(key="corpus_file").allowed_type
    files = {f"mails/{n}.eml": b"From: a" for n in range(5)} | {"mails/a.pages": b"x", "mails/b.odp": b"x"}
    folder_of(at, {**files, "mails/1.txt": b"A note on lights.", "mails/2.txt": b"Another on buoys."})
    assert not at.file_uploader(key="corpus_folder").allowed_type
    at.button(key="corpus_add").click().run()
    assert not at.success
    assert "7 of 9 files" in at.warning[0].proto.title
    for name in ("4\\.eml", "a\\.pages", "b\\.odp"):
        assert name in at.warning[0].value


def test_a_third_of_empty_rows_is_amber_and_stays_so(workspace: Workspace, open_page: Open) -> None:
    rows = "\n".join(["id,text", *(f"{n},{'' if n % 3 == 0 else f'Light {n} burns.'}" for n in range(3600))])
    at = open_page("documents")
    at.file_uploader(key="corpus_file").upload("third.csv", rows.encode(), "text/csv").run()
    at.button(key="corpus_add").click().run()
    assert not at.success
    assert "1,200 rows could not be read" in at.warning[0].proto.title
    assert "and more" in at.warning[0].value
    assert len(at.warning) == 1, "what is told above is not told again"
    at.run()
    assert at.warning[0].proto.title == "1,200 rows could not be read."
    assert "first import, from third\\.csv" in at.warning[0].value
    assert "Line or page" in at.dataframe[-1].value.columns


def test_html_is_stripped_before_the_import_and_help_has_no_option_syntax(
    workspace: Workspace, open_page: Open
) -> None:
    rows = "\n".join(["nr,Body Text", *(f"{n},<p>Light <b>{n}</b></p>" for n in range(5))])
    at = open_page("documents")
    at.file_uploader(key="corpus_file").upload("x.csv", rows.encode(), "text/csv").run()
    assert list(at.dataframe[0].value["Body Text"]) == [f"Light {n}" for n in range(3)]
    boxes = {box.label: box for box in at.selectbox}
    assert boxes["Text"].value == "Body Text"
    for label in ("ID", "Title", "Text", "Queries"):
        assert "auto" not in boxes[label].help
        assert "- " not in boxes[label].help


def test_rows_are_cut_where_a_length_is_chosen(workspace: Workspace, open_page: Open) -> None:
    text = " ".join(f"Sentence {n} of a long note about lighthouses at sea." for n in range(100))
    at = open_page("documents")
    at.file_uploader(key="corpus_file").upload("x.csv", f"id,text\na,{text}\n".encode(), "text/csv").run()
    slider = at.select_slider(key="corpus_rows")
    assert slider.value == 0
    slider.set_value(100).run()
    at.button(key="corpus_add").click().run()
    assert not at.error
    [corpus] = list_corpora(workspace)
    assert corpus.unit == "passage"
    assert next(iter(iter_documents(workspace, corpus.id))).id == "a#1"
    assert "passages" in at.success[0].proto.title


def test_the_command_for_a_folder_names_the_folder(workspace: Workspace, open_page: Open) -> None:
    at = folder_of(open_page("documents"), {"sea/a.txt": b"A note.", "sea/b.txt": b"Another note."})
    at.session_state["command-projects-add"] = True
    at.run()
    assert any("projects add sea" in code.value for code in at.code)
    assert not any("a.txt" in code.value for code in at.code)


def test_a_grown_folder_says_where_it_went_and_which_version_is_the_newest(
    workspace: Workspace, open_page: Open
) -> None:
    files = {f"sea/{n}.txt": f"A note on the light number {n}.".encode() for n in range(6)}
    for more in ({}, {"sea/new.txt": b"One more buoy was laid."}):
        at = folder_of(open_page("documents"), {**files, **more})
        at.button(key="corpus_add").click().run()
        assert not at.error
    assert "No new project\\: sea has the earlier version" in at.success[0].value
    choice = next(box for box in at.selectbox if box.label == "Corpus")
    assert [title.split(" of ")[0] for title in choice.options] == ["sea (newest version)", "sea (earlier version"]
    assert corpora.resolve_corpus(workspace, "sea").previous


def test_a_pdf_that_is_mostly_scanned_is_amber(workspace: Workspace, tmp_path: Path, open_page: Open) -> None:
    canvas = Canvas(str(tmp_path / "half.pdf"))
    canvas.drawString(72, 700, "The lighthouse of the harbour shines all night long.")
    for _ in range(4):
        canvas.showPage()
        canvas.rect(100, 100, 300, 300, fill=1)
    canvas.save()
    at = open_page("documents")
    at.file_uploader(key="corpus_file").upload(
        "half.pdf", (tmp_path / "half.pdf").read_bytes(), "application/pdf"
    ).run()
    at.button(key="corpus_add").click().run()
    assert not at.error
    assert not at.success
    (warning,) = at.warning
    assert "Most pages of 1 PDF have no text" in warning.proto.title
    assert "OCR" in warning.proto.title
    assert "4 of 5 pages" in warning.value
