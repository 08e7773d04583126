"""What a retriever saw of a benchmark: when two queries count as the same, hashes, leaked, in-domain; refusing it.

Queries are compared by a hash of their words, so that case, punctuation and spacing hide nothing, and by one of their
content words, so that order and function words hide nothing either. A training keeps these
hashes beside its result (16 bytes a query), and those of its documents; an evaluation writes what it finds into its
own ``counts``: the mark outlives the query set, the training and the benchmark.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import benchmarks, query_sets
from cdp.base.config import TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.failures import Failures
from cdp.base.workspace import ANSWERS, RECORDS, Workspace, write_bytes
from cdp.benchmarks import beir_files
from cdp.benchmarks.benchmark import Benchmark, part, qrels_files
from cdp.complexity import stopword_list
from cdp.complexity.languages import UNSPACED, combining_marks
from cdp.retrievers.resolve import chain, training_result

# Under this name the inputs of a job say which judged queries its queries were known to hold when it was started.
FILE = "query_hashes.npy"
DOCUMENTS = "document_hashes.npy"
LEAKAGE = "leakage"

Hashes = NDArray[np.uint64]

# From this share of the documents that answer a benchmark's queries on, who trained on them was trained in-domain: as
# for two collections that a study takes to be of one source.
IN_DOMAIN = 0.1

_BREAKS = re.compile(r"[\W_]+")

# Zero-width joiners say how a conjunct is drawn; the word is the same without.
_JOINERS = dict.fromkeys((0x200C, 0x200D))


@cache
def _breaks_beside_marks() -> re.Pattern[str]:
    return re.compile(rf"(?:[^\w{combining_marks()}]|_)+")


def words_of(text: str) -> str:
    """The text as it is compared: compatibility forms and case folded, words and numbers alone. Combining marks stay:
    in scripts of India and South-East Asia they are vowels and tones, and ที่ and ทำ are two words."""
    if text.isascii():
        folded, breaks = text.casefold(), _BREAKS
    else:
        folded = unicodedata.normalize("NFKC", text).casefold().translate(_JOINERS)
        breaks = _breaks_beside_marks()
    return breaks.sub(" ", folded).strip() or folded.strip()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def hashes(texts: Iterable[str]) -> Hashes:
    """One hash per text, shape (n_texts,), in their order."""
    return np.frombuffer(b"".join(_digest(words_of(text)) for text in texts), dtype=np.uint64).copy()


def keys(texts: Iterable[str]) -> Hashes:
    """Two hashes per text, shape (n_texts, 2): of its words in their order, as ``hashes`` gives them, and of its
    content words in any order; the first again where these are too few to tell queries apart."""
    digests = bytearray()
    for text in texts:
        words = words_of(text)
        content = _content(words)
        # No text begins with the mark, so no text is taken for a set of words.
        digests += _digest(words) + _digest(f"~{content}" if content else words)
    return np.frombuffer(bytes(digests), dtype=np.uint64).reshape(-1, 2).copy()


def distinct(judged: Hashes) -> Hashes:
    """The keys of distinct texts, shape (n, 2), ascending."""
    return judged[np.unique(judged[:, 0], return_index=True)[1]]


def _is_in(values: Hashes, known: Hashes) -> NDArray[np.bool_]:
    """``np.isin`` for hashes that are known in ascending order: nothing is sorted again, so that a few hundred judged
    queries are looked up among millions in a moment. Shape of ``values``."""
    if not len(known):
        return np.zeros(values.shape, dtype=bool)
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: NDArray[np.bool_] = known[at] == values
    return found


def any_known(texts: Hashes, known: Hashes) -> NDArray[np.bool_]:
    """Of texts by their ``keys``: whether either hash is known (ascending), shape (n_texts,)."""
    known_keys = _is_in(texts, known)
    return known_keys[:, 0] | known_keys[:, 1]


def n_known(judged: Hashes, known: Hashes) -> tuple[int, int]:
    """How many of the judged queries (their ``keys``, each once) are known, and how many of these by their content
    words alone. ``known`` holds either kind of hash, ascending."""
    exact, near = _is_in(judged[:, 0], known), _is_in(judged[:, 1], known)
    return int((exact | near).sum()), int((near & ~exact).sum())


def write_hashes(results: Path, texts: Iterable[str], documents: Iterable[str] = ()) -> None:
    """Write the hashes of a training's queries and of their documents into its ``results`` folder, each once,
    ascending."""
    for name, values in ((FILE, keys(texts)), (DOCUMENTS, hashes(documents))):
        buffer = io.BytesIO()
        np.save(buffer, np.unique(values))
        write_bytes(results / name, buffer.getvalue())


def set_hashes(workspace: Workspace, query_set: str, per_doc: int | None = None) -> Hashes:
    """The hashes of a query set's queries, of both kinds: the first ones of its documents, each once."""

    def compute() -> Hashes:
        lines = query_sets.read_queries(workspace, query_set, Failures())
        return np.unique(keys(query for line in lines for query in line.queries[:per_doc]))

    path = query_sets.files(workspace, query_set).queries
    return ANSWERS.get(path, ("query hashes", per_doc), compute)


def seen(workspace: Workspace, retriever: str, name: str = FILE) -> Hashes:
    """The hashes of all queries that a retriever was trained on, those of what it started from among them; of its
    documents for the ``name`` DOCUMENTS."""
    files = (folder / "results" / name for folder, _ in chain(workspace, retriever))
    none: Hashes = np.empty(0, dtype=np.uint64)
    return np.unique(np.concatenate([none, *(np.load(path) for path in files if path.is_file())]))


def counts(workspace: Workspace, retriever: str, benchmark: Benchmark) -> dict[str, int]:
    """What an evaluation has to say of the retriever's training, zeros left out: ``leaked_queries`` (the judged queries
    it was trained on, ``near_duplicates`` among them), ``leaked_training`` (1: it was allowed to see judged queries, of
    this benchmark or another), ``trained_positives`` of ``judged_positives`` (the documents that answer the benchmark's
    queries), and ``steps_taken`` of ``steps_planned`` where it was stopped."""
    trainings = list(chain(workspace, retriever))
    if not trainings:
        return {}
    counted = counts_of(seen(workspace, retriever), seen(workspace, retriever, DOCUMENTS), benchmark)
    if any(spec.get("inputs", {}).get(LEAKAGE) for _, spec in trainings):
        counted["leaked_training"] = 1
    result = training_result(trainings[0][0])
    if result is not None and result.get("stopped"):
        counted |= {"steps_taken": int(result["steps"]), "steps_planned": int(result["steps_planned"])}
    return counted


def counts_of(queries: Hashes, documents: Hashes, benchmark: Benchmark) -> dict[str, int]:
    """What ``counts`` says of one benchmark, for a retriever that was trained on these queries and documents."""
    leaked, near = n_known(distinct(keys(benchmark.queries)), queries)
    counted = {"leaked_queries": leaked, "near_duplicates": near}
    if len(documents):
        relevant = {d for grades in benchmark.qrels.values() for d, grade in grades.items() if grade > 0}
        texts = (
            text for name, text in zip(benchmark.document_ids, benchmark.documents, strict=True) if name in relevant
        )
        positives = hashes(texts)
        trained = int(np.isin(positives, documents).sum())
        counted |= {"trained_positives": trained, "judged_positives": len(positives) if trained else 0}
    return {name: n for name, n in counted.items() if n}


def marks(counts: Mapping[str, Any]) -> tuple[str, ...]:
    """The faults among ``findings``, as badges: ``leaked``, ``stopped at step 1 of 116``."""
    return tuple(word for word, _ in findings(counts, 0) if word != "in-domain")


def findings(counts: Mapping[str, Any], judged: int) -> list[tuple[str, str]]:
    """What ``counts`` says of a training, each as a badge's word and in a sentence."""
    found = []

    if counts.get("leaked_queries"):
        near = int(counts.get("near_duplicates", 0))
        reworded = f", {near:,} of them with the same content words in another form" if near else ""
        sentence = f"Leaked: {counts['leaked_queries']:,} of the {judged:,} judged queries were trained on{reworded}."
        found.append(("leaked", sentence))
    elif counts.get("leaked_training"):
        sentence = "Leaked: this training was allowed to see queries that a benchmark of its evaluation judges."
        found.append(("leaked", sentence))

    if "steps_planned" in counts:
        stopped = f"stopped at step {counts.get('steps_taken', 0):,} of {counts['steps_planned']:,}"
        found.append((stopped, f"The training was {stopped}: this is no score of a whole one."))

    trained, positives = int(counts.get("trained_positives", 0)), int(counts.get("judged_positives", 0))
    if trained and trained >= IN_DOMAIN * positives:
        sentence = (
            f"In-domain: the training had queries for {trained:,} of the {positives:,} documents that answer the "
            "benchmark's queries. That is the normal use for your own documents; it says nothing about others."
        )
        found.append(("in-domain", sentence))

    return found


# Queries that share all they are made of ask the same if that is four words: “Where is Paris?” and “Why Paris?” do not.
# One word that is another one ("mill 12", "mill 13") makes another query. Two letters of a script without spaces count
# as a word.
ENOUGH_WORDS = 4
LETTERS_OF_A_WORD = 2

# Languages with spaces between words. One list for all: which one a query is in need not be known.
_SPACED = ("en", "fr", "ru", "ar")

# Question words are function words to a stopword list, but two of them ask two things.
_ASKING = frozenset((
    "who", "whom", "whose", "what", "which", "when", "where", "why", "how", "qui", "quoi", "que", "quand",
    "où", "pourquoi", "comment", "combien", "quel", "quelle", "quels", "quelles", "lequel", "laquelle", "кто",
    "что", "какой", "какая", "какое", "какие", "когда", "где", "куда", "почему", "зачем", "как", "сколько",
    "чей", "من", "ما", "ماذا", "متى", "أين", "لماذا", "كيف", "كم", "أي", "هل"
))  # fmt: skip

_LETTERS = re.compile(f"[{UNSPACED}]")
# Chinese function words and Japanese particles of one letter.
_FUNCTION_LETTERS = frozenset("的了是在於于之也都就而及與与和或吗嗎呢吧啊呀着著过過这這那其所のはがをにでとも")


@cache
def _function_words() -> frozenset[str]:
    """What may differ between rewordings. Not the question word: when something began is not where it began."""
    return frozenset().union(*map(stopword_list, _SPACED)) - _ASKING


def _content(words: str) -> str:
    """A query's content words and its letters of scripts without spaces, each in a fixed order; empty where there are
    too few to tell it from other queries."""
    found = sorted(set(_LETTERS.sub(" ", words).split()) - _function_words())
    letters = sorted(letter for letter in _LETTERS.findall(words) if letter not in _FUNCTION_LETTERS)
    enough = len(found) + len(letters) / LETTERS_OF_A_WORD >= ENOUGH_WORDS
    return " ".join([*found, "".join(letters)]) if enough else ""


FLAG = "--allow-leakage"
FOLLOWS = "The training and every result of it, now and later, are then marked as leaked."

# What is trained on: its name, its query set (empty for a retriever's earlier training), the hashes of its queries.
Hashed = tuple[str, str, Hashes]


@dataclass(frozen=True)
class Leak:
    """Overlap of a training source (query set or retriever) with one split of a benchmark.

    ``queries`` of the ``judged`` ones are in the source, ``near`` of them reworded (the same content words).
    ``query_set`` is empty for a retriever's earlier training.
    """

    source: str
    benchmark: str
    split: str
    queries: int
    judged: int
    query_set: str = ""
    near: int = 0

    @property
    def sentence(self) -> str:
        reworded = f", {self.near:,} of them reworded (the same content words)" if self.near else ""
        return (
            f"{self.source} holds {self.queries:,} of the {self.judged:,} queries that {self.benchmark} {self.split} "
            f"judges{reworded}."
        )


def find_leaks(workspace: Workspace, names: Iterable[str], benchmark_splits: Iterable[tuple[str, str]]) -> list[Leak]:
    """Return the leaks between query sets (by id or name, empty ones skipped) and (benchmark, split) places."""
    return _leaks(workspace, _of_sets(workspace, names), benchmark_splits)


def among(workspace: Workspace, names: Iterable[str], texts: Iterable[str], benchmark: str, split: str) -> list[Leak]:
    """Return the leaks between query sets and the queries of a planned split."""
    return _in_split(_of_sets(workspace, names), distinct(keys(texts)), benchmark, split)


def of_training(
    workspace: Workspace, config: TrainingConfig, benchmark_splits: Iterable[tuple[str, str]]
) -> list[Leak]:
    """Return the leaks of a training with these evaluations and its dev benchmark, by its query set and by the earlier
    training of the retriever that it starts from."""
    wanted = [*benchmark_splits, *([(config.dev.benchmark, config.dev.split)] if config.dev.benchmark else [])]
    if not wanted:
        return []
    before = (f"The training of {config.retriever}", "", seen(workspace, config.retriever))
    return _leaks(workspace, [*_of_sets(workspace, (config.query_set, *config.beside), config.per_doc), before], wanted)


def _of_sets(workspace: Workspace, names: Iterable[str], per_doc: int | None = None) -> list[Hashed]:
    sets = [query_sets.resolve_query_set(workspace, name) for name in dict.fromkeys(names) if name]
    return [(each.name, each.id, set_hashes(workspace, each.id, per_doc)) for each in sets]


def _leaks(workspace: Workspace, sources: Sequence[Hashed], benchmark_splits: Iterable[tuple[str, str]]) -> list[Leak]:
    places = [place(workspace, name, split) for name, split in dict.fromkeys(benchmark_splits)]
    return [leak for at in places for leak in _in_split(sources, judged_keys(*at), at[0].name, at[1])]


def _in_split(sources: Sequence[Hashed], judged: Hashes, benchmark: str, split: str) -> list[Leak]:
    """The leaks into one split by the keys of its queries, shape (n, 2)."""
    leaks = []
    for source, query_set, hashes in sources:
        shared, near = n_known(judged, hashes)
        if shared:
            leaks.append(Leak(source, benchmark, split, shared, len(judged), query_set, near))
    return leaks


def shared(workspace: Workspace, first: tuple[str, str], second: tuple[str, str]) -> int:
    """Return how many queries of one (benchmark, split) another judges too, by their words or content words."""
    return n_known(judged_keys(*place(workspace, *first)), np.unique(judged_keys(*place(workspace, *second))))[0]


def repeats(texts: Iterable[str], of: Iterable[str]) -> NDArray[np.bool_]:
    """Return whether each text asks the same as one ``of`` these, by its words or content words; (n_texts,)."""
    return any_known(keys(texts), np.unique(keys(of)))


def require(leaks: Iterable[Leak], allow_leakage: bool) -> None:
    """Raise ConfigError for the first leak, unless leaks are allowed."""
    for leak in () if allow_leakage else leaks:
        raise ConfigError(
            f"{leak.sentence} Its score there would not say how it answers queries that it has never seen.",
            hint="Make a copy of the set without them (queries leave-out), train on other queries (of a BEIR folder "
            f"import the train split alone: --split train), or evaluate elsewhere. Or allow it: {FLAG}. {FOLLOWS}",
        )


def links(leaks: Iterable[Leak]) -> dict[str, Any]:
    """Return the record of allowed leaks for a job's inputs; empty without any."""
    records = [dataclasses.asdict(leak) for leak in leaks]
    return {LEAKAGE: records} if records else {}


def place(workspace: Workspace, name: str, split: str) -> tuple[Path, str]:
    folder = benchmarks.resolve_benchmark(name, workspace)
    return folder, benchmarks.choose_split(benchmarks.describe(folder, workspace), split)


def judged_keys(folder: Path, split: str) -> Hashes:
    """Return the keys of a split's queries, shape (n, 2), cached while its judgments are unchanged."""
    path, queries = qrels_files(folder)[split], part(folder, "queries")

    def compute() -> Hashes:
        judged, lines = beir_files.read_qrels(path).grades, beir_files.read_queries(queries)
        return distinct(keys(lines[query].text for query in judged if query in lines))

    return ANSWERS.get(queries, ("judged", split, RECORDS.digest(path)), compute)
