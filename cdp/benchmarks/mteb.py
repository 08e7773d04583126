"""MTEB: a benchmark written as a task that MTEB loads without the hub (BEIR files, dataset card, ``mteb_task.py``)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from cdp.base.errors import InputError
from cdp.base.locks import appearing
from cdp.benchmarks.beir_files import iter_corpus, json_line, write_beir
from cdp.benchmarks.benchmark import Benchmark, part, read_parts, split_of

# MTEB names a language by ISO 639-3 and its script (BCP 47).
_LANGUAGES = dict(
    re.findall(
        r"(\w+)=(\S+)",
        "ar=ara-Arab bn=ben-Beng bg=bul-Cyrl cs=ces-Latn da=dan-Latn de=deu-Latn el=ell-Grek en=eng-Latn es=spa-Latn "
        "et=est-Latn fa=fas-Arab fi=fin-Latn fr=fra-Latn he=heb-Hebr hi=hin-Deva hr=hrv-Latn hu=hun-Latn hy=hye-Armn "
        "id=ind-Latn it=ita-Latn ja=jpn-Jpan ka=kat-Geor ko=kor-Kore lt=lit-Latn lv=lav-Latn nl=nld-Latn no=nor-Latn "
        "pl=pol-Latn pt=por-Latn ro=ron-Latn ru=rus-Cyrl sk=slk-Latn sl=slv-Latn sv=swe-Latn sw=swa-Latn ta=tam-Taml "
        "te=tel-Telu th=tha-Thai tr=tur-Latn uk=ukr-Cyrl ur=urd-Arab vi=vie-Latn yo=yor-Latn zh=zho-Hans",
    )
)

_TASK = '''"""A task of MTEB, read from this folder without the hub.

    from mteb_task import BenchmarkTask
    mteb.evaluate(model, BenchmarkTask(), cache=None, prediction_folder="predictions")

Without ``cache=None`` MTEB may return the scores of another local model: it knows both by one name.
"""

from pathlib import Path

from mteb.abstasks import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata


class BenchmarkTask(AbsTaskRetrieval):
    ignore_identical_ids = {ignore_identical_ids}
    metadata = TaskMetadata(
        name={name},
        description={description},
        dataset={{"path": str(Path(__file__).resolve().parent), "revision": {revision}}},
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits={splits},
        eval_langs={languages},
        main_score="ndcg_at_10",
    )
'''

# Types are stated: else a column of dates, or of ids such as 007, would be read as dates or numbers.
_FEATURES = {
    "corpus": {"_id": "string", "title": "string", "text": "string"},
    "queries": {"_id": "string", "text": "string"},
    "default": {"query-id": "string", "corpus-id": "string", "score": "int32"},
}


def export_mteb(folder: Path, target: Path) -> list[str]:
    """Write a benchmark as a folder with ``mteb_task.py``; return sentences on what MTEB does otherwise.

    InputError if the folder is there, or a split's name is a pattern. Judgments stand in ``qrels/<split>.jsonl`` as
    well, which MTEB reads.
    """
    parts = read_parts(folder)
    for split in parts.qrels:
        if re.search(r"[\[\]*?{}]", split):
            hint = "Rename its file in qrels/ first."
            raise InputError(f"MTEB reads the name of the split {split} as a pattern of files.", hint=hint)

    splits = [split_of(parts, split, allow_unknown=True) for split in parts.qrels]
    judged = {benchmark.split: benchmark.qrels for benchmark in splits}
    notes = _notes(splits)

    lines = ({"_id": query, "text": line.text} for query, line in parts.queries.items())
    with appearing(target) as made:
        write_beir(made, iter_corpus(part(folder, "corpus")), lines, judged)
        for split, qrels in judged.items():
            with open(made / "qrels" / f"{split}.jsonl", "x", encoding="utf-8") as file:
                file.writelines(map(json_line, _rows(qrels)))

        (made / "README.md").write_text(_card(list(judged), notes), encoding="utf-8")
        (made / "mteb_task.py").write_text(_task(splits, notes), encoding="utf-8")
    return notes


def _rows(qrels: Mapping[str, Mapping[str, int]]) -> Iterator[dict[str, Any]]:
    for query, grades in qrels.items():
        for document, grade in grades.items():
            yield {"query-id": query, "corpus-id": document, "score": grade}


def _notes(splits: Sequence[Benchmark]) -> list[str]:
    """Return what makes MTEB's figures differ from those measured here."""
    notes = []
    excluded = chain.from_iterable(benchmark.excluded.items() for benchmark in splits)
    if any(documents != (query,) for query, documents in excluded):  # others than the document with the query's own id
        notes.append("MTEB does not leave out the documents that some queries exclude; scores may be lower there.")
    if any(benchmark.relevant_from > 1 for benchmark in splits):
        notes.append("MTEB counts every grade above 0 as relevant in MRR, MAP, recall and precision.")
    if splits[0].counted_language not in _LANGUAGES:
        notes.append(f"The task's language stands as English: correct {splits[0].language!r} in mteb_task.py.")
    return notes


def _task(splits: Sequence[Benchmark], notes: Sequence[str]) -> str:
    first = splits[0]
    facts = {
        # A name is a part of file names in MTEB.
        "name": re.sub(r"[^\w.-]+", "-", first.name),
        "description": " ".join([f"{first.name}, exported by CDP Studio.", *notes]),
        "revision": first.hash[:16],
        "splits": [benchmark.split for benchmark in splits],
        "languages": [_LANGUAGES.get(first.counted_language, _LANGUAGES["en"])],
    }

    # JSON's texts and lists are Python's as well: a name cannot become code.
    literals = {name: json.dumps(value) for name, value in facts.items()}
    excluded = chain.from_iterable(benchmark.excluded.items() for benchmark in splits)
    same = any(query in documents for query, documents in excluded)
    return _TASK.format(**literals, ignore_identical_ids=same)


def _card(splits: Sequence[str], notes: Sequence[str]) -> str:
    """Return a dataset card whose metadata name the files of each part, as ``datasets.load_dataset`` reads them."""
    files = {
        "corpus": [{"split": "corpus", "path": "corpus.jsonl"}],
        "queries": [{"split": "queries", "path": "queries.jsonl"}],
        "default": [{"split": split, "path": f"qrels/{split}.jsonl"} for split in splits],
    }
    info = []
    for name, columns in _FEATURES.items():
        features = [{"name": column, "dtype": kind} for column, kind in columns.items()]
        info.append({"config_name": name, "features": features})

    # JSON is YAML.
    configs = json.dumps([{"config_name": name, "data_files": data} for name, data in files.items()])
    return "\n".join(["---", f"configs: {configs}", f"dataset_info: {json.dumps(info)}", "---", "", *notes, ""])
