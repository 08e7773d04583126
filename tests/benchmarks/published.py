"""Small benchmarks exactly as their publishers lay them out, one writer per family: {path in the repository: bytes}."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Repository = dict[str, bytes]


def parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), buffer)
    return buffer.getvalue()


def lines(rows: Sequence[Mapping[str, Any]], *, packed: bool = False) -> bytes:
    data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    return gzip.compress(data, mtime=0) if packed else data


DOCUMENTS = [
    {"_id": "d1", "title": "Tides", "text": "The moon pulls the water of the sea.", "metadata": {}},
    {"_id": "d2", "title": "", "text": "Bakers let dough rise before it is baked.", "metadata": {}},
    {"_id": "d3", "title": "Bees", "text": "A dancing bee tells the hive of flowers.", "metadata": {}},
]
QUERIES = [
    {"_id": "q1", "text": "why does the sea rise", "metadata": {}},
    {"_id": "q2", "text": "how do bees talk", "metadata": {}},
    {"_id": "t1", "text": "a question of the train split", "metadata": {}},
]
TEST = b"query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td3\t1\nq2\td2\t0\n"
TRAIN = b"query-id\tcorpus-id\tscore\nt1\td2\t1\n"


def beir_jsonl() -> tuple[Repository, Repository]:
    """BeIR/<name> as gzipped JSON Lines with a loading script, and BeIR/<name>-qrels."""
    collection = {
        "README.md": b"---\nlicense: cc-by-sa-4.0\n---\n",
        "scifact.py": b"raise SystemExit('a loading script is never run')\n",
        "corpus.jsonl.gz": lines(DOCUMENTS, packed=True),
        "queries.jsonl.gz": lines(QUERIES, packed=True),
    }
    return collection, {"README.md": b"", "test.tsv": TEST, "train.tsv": TRAIN}


def beir_parquet() -> tuple[Repository, Repository]:
    """The same after its conversion to Parquet; the corpus in two files."""
    plain = [{k: v for k, v in row.items() if k != "metadata"} for row in DOCUMENTS]
    queries = [{"_id": row["_id"], "title": "", "text": row["text"]} for row in QUERIES]
    collection = {
        "corpus/corpus-00000-of-00002.parquet": parquet(plain[:2]),
        "corpus/corpus-00001-of-00002.parquet": parquet(plain[2:]),
        "queries/queries-00000-of-00001.parquet": parquet(queries),
    }
    return collection, {"test.tsv": TEST, "train.tsv": TRAIN}


def mteb_forum() -> Repository:
    """mteb/cqadupstack-<forum>: everything in one repository."""
    return {
        "corpus.jsonl": lines(DOCUMENTS),
        "queries.jsonl": lines(QUERIES),
        "qrels/test.tsv": TEST,
        "qrels/test.jsonl": lines([{"query-id": "q1", "corpus-id": "d1", "score": 1}]),
    }


def nano() -> Repository:
    """zeta-alpha-ai/Nano…: no titles, no grades, one split called train."""
    documents = [{"_id": row["_id"], "text": row["text"]} for row in DOCUMENTS]
    queries = [{"_id": row["_id"], "text": row["text"]} for row in QUERIES[:2]]
    qrels = [{"query-id": "q1", "corpus-id": "d1"}, {"query-id": "q2", "corpus-id": "d3"}]
    rows = {"corpus": documents, "queries": queries, "qrels": qrels}
    return {f"{name}/train-00000-of-00001.parquet": parquet(found) for name, found in rows.items()}


def bright(task: str = "biology") -> Repository:
    """xlangai/BRIGHT: ids with paths in them, a repeated document, exclusions of both kinds."""
    documents = [
        {"id": "moon/a_1.txt", "content": "Tides follow the moon."},
        {"id": "moon/b_2.txt", "content": "The moon is made of rock."},
        {"id": "bees/c_3.txt", "content": "Bees dance."},
        {"id": "bees/c_3.txt", "content": "Bees dance."},
        {"id": "bees/d_4.txt", "content": "Bees sting."},
    ]
    examples = [
        {
            "query": "Why is the sea higher twice a day?",
            "reasoning": "the moon",
            "id": "0",
            "excluded_ids": ["N/A"],
            "gold_ids_long": ["moon/a.txt"],
            "gold_ids": ["moon/a_1.txt"],
            "gold_answer": "-",
        },
        {
            "query": "How does a bee tell of a field?",
            "reasoning": "a dance",
            "id": "1",
            "excluded_ids": ["bees/d_4.txt", "moon/b_2.txt"],
            "gold_ids_long": ["bees/c.txt"],
            "gold_ids": ["bees/c_3.txt"],
            "gold_answer": "-",
        },
    ]
    other = [{"id": "x", "content": "of another task"}]
    return {
        f"documents/{task}-00000-of-00001.parquet": parquet(documents),
        f"examples/{task}-00000-of-00001.parquet": parquet(examples),
        f"long_documents/{task}-00000-of-00001.parquet": parquet(other),
        f"gpt4_reason/{task}-00000-of-00001.parquet": parquet(examples),
        "documents/pony-00000-of-00001.parquet": parquet(other),
    }


def miracl(language: str = "ko") -> tuple[Repository, Repository]:
    """miracl/miracl and miracl/miracl-corpus: topics and judgments without a header, passages in two files."""
    version = f"miracl-v1.0-{language}"
    topics = "0\t바다는 왜 오르내리나요?\n3\t벌은 어떻게 말하나요?\n".encode()
    qrels = b"0\tQ0\t7#0\t1\n0\tQ0\t7#1\t0\n3\tQ0\t9#0\t1\n"
    passages = [
        {"docid": "7#0", "title": "조석", "text": "달이 바닷물을 끌어당긴다."},
        {"docid": "7#1", "title": "조석", "text": "하루에 두 번 일어난다."},
        {"docid": "9#0", "title": "꿀벌", "text": "벌은 춤으로 꽃을 알린다."},
    ]
    return (
        {
            f"{version}/topics/topics.{version}-dev.tsv": topics,
            f"{version}/topics/topics.{version}-train.tsv": b"9\tx\n",
            f"{version}/qrels/qrels.{version}-dev.tsv": qrels,
            "miracl.py": b"",
        },
        {
            f"miracl-corpus-v1.0-{language}/docs-0.jsonl.gz": lines(passages[:2], packed=True),
            f"miracl-corpus-v1.0-{language}/docs-1.jsonl.gz": lines(passages[2:], packed=True),
            "miracl-corpus-v1.0-en/docs-0.jsonl.gz": lines([{"docid": "1#0", "title": "", "text": "x"}], packed=True),
        },
    )


def trec_dl(year: str = "2019") -> tuple[Repository, Repository]:
    """BeIR/msmarco, and the two files that lie elsewhere: TREC's four columns, grades 0 to 3, unjudged queries."""
    passages = [{"_id": str(i), "title": "", "text": f"passage {i} on {what}"} for i, what in PASSAGES]
    queries = b"156493\tdo goldfish grow\n1110199\twhat is wifi vs bluetooth\n999\tnever judged\n"
    qrels = b"156493 Q0 1 3\n156493 Q0 2 1\n156493 Q0 3 0\n1110199 Q0 4 2\n1110199 Q0 5 1\n"
    return (
        {"corpus.jsonl.gz": lines(passages, packed=True), "queries.jsonl.gz": lines([], packed=True)},
        {f"{year}qrels-pass.txt": qrels, f"msmarco-test{year}-queries.tsv.gz": gzip.compress(queries, mtime=0)},
    )


PASSAGES = [(1, "goldfish"), (2, "fish"), (3, "gold"), (4, "wifi"), (5, "radio"), (156493, "a number like a query's")]


def two_wiki(*, as_text: bool) -> Repository:
    """xanhho/2WikiMultihopQA: context and supporting facts as JSON texts in Parquet, or as lists in JSON."""
    questions = [
        {
            "id": "a1",
            "type": "comparison",
            "question": "Which of the two seas is deeper?",
            "context": [
                ["North Sea", ["It is shallow.", "It is cold."]],
                ["Black Sea", ["It is deep."]],
                ["Tea", ["Hot."]],
            ],
            "supporting_facts": [["North Sea", 0], ["Black Sea", 0]],
            "answer": "Black Sea",
        },
        {
            "id": "a2",
            "type": "compositional",
            "question": "Where does tea come from?",
            "context": [["Tea", ["Hot."]], ["Tea", ["A plant of China."]], ["China", ["A country."]]],
            "supporting_facts": [["China", 0]],
            "answer": "China",
        },
    ]
    if not as_text:
        return {"dev.json": json.dumps(questions).encode(), "train.json": b"[]"}
    rows = [
        {**q, "context": json.dumps(q["context"]), "supporting_facts": json.dumps(q["supporting_facts"])}
        for q in questions
    ]
    return {"dev.parquet": parquet(rows), "train.parquet": parquet(rows[:1]), "2wikimultihop.py": b""}


def musique() -> Repository:
    """dgslibisey/MuSiQue: twenty paragraphs per question in truth, three here."""
    rows = [
        {
            "id": "2hop__1_2",
            "paragraphs": [
                {"idx": 0, "title": "Green", "paragraph_text": "An album by Steve.", "is_supporting": True},
                {"idx": 1, "title": "Steve", "paragraph_text": "Plays guitar.", "is_supporting": True},
                {"idx": 2, "title": "Blue", "paragraph_text": "A colour.", "is_supporting": False},
            ],
            "question": "Who plays on Green?",
            "answer": "Steve",
            "answerable": True,
        },
        {
            "id": "3hop1__3",
            "paragraphs": [{"idx": 0, "title": "Blue", "paragraph_text": "A colour.", "is_supporting": True}],
            "question": "What is blue?",
            "answer": "a colour",
            "answerable": True,
        },
    ]
    return {"musique_ans_v1.0_dev.jsonl": lines(rows), "musique_ans_v1.0_train.jsonl": lines(rows[:1])}


def novelhop() -> Repository:
    """abhaygupta1266/novelhopqa: a file per number of hops."""
    books = [("The Sea", "They sailed at dawn."), ("The Sea", "They came home."), ("The Hill", "He climbed alone.")]
    found: Repository = {}
    for hops in range(1, 5):
        rows = [
            {"book": book, "context": context, "question": f"{hops} hops: {context}", "answer": "-"}
            for book, context in books
        ]
        name = f"hop_{hops}"
        found[f"data/{name}-00000-of-00001.parquet"] = parquet(rows if hops == 1 else rows[:1])
    return found


def put(folder: Path, repository: Repository) -> Path:
    """Write a repository's files to a folder, as a download of it leaves them."""
    for path, data in repository.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder
