"""From query set to training pairs: documents drawn by seed, order of batches, hard negatives, what is no negative."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cdp import query_sets
from cdp.base.errors import ConfigError, InputError
from cdp.base.failures import Failures
from cdp.base.text import counted
from cdp.base.workspace import Workspace, sha256_text, shuffle_key
from cdp.corpus import iter_documents, load_manifest
from cdp.query_sets import QuerySet

UNUSABLE = "documents whose queries or text could not be read"


@dataclass(frozen=True)
class PairSet:
    """Queries, the distinct documents they were written for, and which document each query belongs to.

    ``document_of`` has shape (n_pairs,) and holds indices into ``documents``, which are distinct by content hash: two
    documents with equal content have one index. ``query_ids`` are ``<document id>-<position from 1>``. ``reasoned``
    holds q′ of each query where RI needs it; the query itself where there is none, which ``unreasoned`` counts. Where
    the query that is trained on is q′ itself, which ``swapped`` (n_pairs,) marks, it holds q. ``negatives`` has shape
    (n_pairs, h) and holds the hard negatives of each query as indices into ``documents``, where those that are no
    query's document stand last; -1 where a query has fewer. ``dropped`` counts what could not be used, by reason.
    """

    queries: list[str]
    documents: list[str]
    document_of: NDArray[np.int64]
    query_set: QuerySet = field(default_factory=lambda: QuerySet("", "", "", "", complete=True))
    """What the pairs were read from, as it was then: with its content hash, even if it was not complete."""
    dropped: dict[str, int] = field(default_factory=dict)
    query_ids: list[str] = field(default_factory=list)
    reasoned: list[str] | None = None
    swapped: NDArray[np.bool_] | None = None
    unreasoned: int = 0
    negatives: NDArray[np.int64] | None = None
    teacher: NDArray[np.float64] | None = None
    """Soft labels (n_pairs, 1 + h): a teacher's score of the document and of each hard negative, NaN for none."""
    excluded_ids: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By query id the ids of the documents, its own aside, that are never its negatives: others that the same query
    was written for, and the passages beside any of these in its file."""
    excluded_indices: NDArray[np.int64] | None = None
    """``excluded_ids`` as indices into ``documents`` (n_pairs, k), -1 where there are fewer."""
    languages: list[str] = field(default_factory=list)
    """Of pairs from several sets the language of each one's set; empty where all are of one set."""

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def language(self) -> str:
        """The set's language."""
        return self.query_set.language or "en"

    @property
    def n_documents(self) -> int:
        """Distinct documents that have a query; those that are hard negatives alone do not count."""
        return int(self.document_of.max(initial=-1)) + 1

    @property
    def without_negatives(self) -> int:
        """Pairs that have no hard negative although others have."""
        return 0 if self.negatives is None else int((self.negatives < 0).all(axis=1).sum())

    @property
    def alone(self) -> NDArray[np.bool_]:
        """Pairs (n_pairs,) without any negative: every other document answers their query, or lies beside one."""
        if self.excluded_indices is None:
            return np.zeros(len(self), dtype=np.bool_)
        others = (self.excluded_indices >= 0) & (self.excluded_indices != self.document_of[:, None])
        return np.asarray(others.sum(axis=1) >= len(self.documents) - 1)

    @property
    def content_hash(self) -> str:
        """16 hex digits of the SHA-256 of all pairs in order: equal pairs, equal hash."""
        digest = hashlib.sha256()
        for text in (*self.queries, *self.documents):
            data = text.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "big") + data)
        digest.update(self.document_of.tobytes())
        if self.negatives is not None:
            digest.update(self.negatives.tobytes())
        for array in (self.teacher, self.excluded_indices):
            digest.update(b"" if array is None else array.tobytes())
        return digest.hexdigest()[:16]

    def part(self, rows: NDArray[np.int64]) -> PairSet:
        """Only these pairs, with their documents and hard negatives."""
        used = [self.document_of[rows]]
        if self.negatives is not None:
            used.append(self.negatives[rows].ravel())

        used_documents = np.unique(np.concatenate(used))
        used_documents = used_documents[used_documents >= 0]
        index_of = np.full(len(self.documents) + 1, -1, dtype=np.int64)  # the last entry is where -1 leads
        index_of[used_documents] = np.arange(len(used_documents))

        def numbered(documents: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
            return None if documents is None else index_of[documents[rows]]

        return replace(
            self,
            queries=_at(self.queries, rows),
            documents=_at(self.documents, used_documents),
            document_of=index_of[self.document_of[rows]],
            query_ids=_at(self.query_ids, rows),
            reasoned=self.reasoned and _at(self.reasoned, rows),
            swapped=_rows_of(self.swapped, rows),
            negatives=numbered(self.negatives),
            teacher=_rows_of(self.teacher, rows),
            excluded_indices=numbered(self.excluded_indices),
            languages=self.languages and _at(self.languages, rows),
        )

    def without(self, usable: NDArray[np.bool_], reason: str) -> PairSet:
        """Only the usable pairs, the others counted under ``reason``; InputError where too few are left."""
        if usable.all():
            return self
        n = int((~usable).sum())
        left = self.part(np.flatnonzero(usable))
        left = replace(left, dropped={**self.dropped, reason: self.dropped.get(reason, 0) + n})
        left.check()
        return left

    def check(self) -> None:
        """InputError where no training is possible: no pair, or no other document to serve as a negative."""
        if not self.queries:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.dropped.items() if count)
            why = reasons and f" ({reasons})"
            raise InputError(
                f"The query set {self.query_set.id} gives no training pairs{why}.",
                hint="Generate or import queries for documents of its corpus first.",
            )
        if len(self.documents) < 2:
            raise InputError(
                f"The query set {self.query_set.id} has {counted(len(self), 'pair')} over one document only, so no "
                "pair has a negative to learn from.",
                hint="Training needs queries for at least two different documents.",
            )

    def check_negatives(self) -> None:
        """InputError where no pair has a negative: its loss would be 0 at every step. Hard negatives count."""
        if self.alone.all():
            raise InputError(
                f"No query of {self.query_set.name or self.query_set.id} has a negative to learn from: each was "
                f"written for all of its {len(self.documents):,} documents, or for passages beside each other.",
                hint="Training needs queries that differ between documents: write or import others.",
            )


def _rows_of(array: NDArray[Any] | None, rows: NDArray[np.int64]) -> NDArray[Any] | None:
    return None if array is None else array[rows]


def _at(texts: Sequence[str], rows: NDArray[np.int64]) -> list[str]:
    return [texts[row] for row in rows]


# The passages before and after a query's own are no negatives for it: of so many other documents one is.
ENOUGH = 3


def check_set(workspace: Workspace, query_set: QuerySet) -> None:
    """Raise InputError for a set whose pairs have no negative; all of its documents are read only where that may be."""
    lines = (line for line in query_sets.read_queries(workspace, query_set.id) if any(map(str.strip, line.queries)))
    first = next(lines, None)
    if first is None or query_set.hard_negatives:
        return

    same = query_sets.plain_form(next(filter(str.strip, first.queries)))
    answers = {first.document_id, *first.together}
    others = (line for line in lines if same not in map(query_sets.plain_form, line.queries))
    names = {first.document_id}
    names |= {line.document_id for line in islice(others, ENOUGH) if line.document_id not in answers}
    found = (d.content_hash for d in iter_documents(workspace, query_set.corpus_id) if d.id in names)
    if len(set(islice(found, len(names)))) <= ENOUGH:
        load_pairs(workspace, query_set.id).check_negatives()


def load_pairs(
    workspace: Workspace, query_set_id: str, *, per_doc: int | None = None, failures: Failures | None = None
) -> PairSet:
    """The pairs of a query set: the first ``per_doc`` queries of each of its documents.

    Empty queries, empty documents and queries for documents that the corpus does not have are left out and counted;
    so is a document whose line or text cannot be used, which goes to ``failures``. NotFoundError if there is no such
    query set, InputError if nothing is left to train on.
    """
    failures = failures or Failures()
    query_set = query_sets.load(workspace, query_set_id)
    # An incomplete set has no hash of its own yet: what was trained on is named by what is there now.
    query_set = replace(query_set, content_hash=query_sets.content_hash(workspace, query_set))

    dropped = {"empty queries": 0, "queries for unknown documents": 0, "queries for empty documents": 0}
    wanted: dict[str, list[tuple[str, str]]] = {}
    together: dict[str, list[str]] = {}
    for line in query_sets.read_queries(workspace, query_set_id, failures):
        if line.together:
            together[line.document_id] = line.together

        first = [(query_id, text.strip()) for query_id, text in line.with_ids(per_doc)]
        filled = [(query_id, text) for query_id, text in first if text]
        dropped["empty queries"] += len(first) - len(filled)
        if filled:  # a later line of the same document replaces an earlier one
            wanted[line.document_id] = filled

    contents: dict[str, tuple[str, str]] = {}
    names: list[str] = []
    for document in iter_documents(workspace, query_set.corpus_id):
        if "#" in document.id:
            names.append(document.id)
        if document.id in wanted:
            contents[document.id] = (document.content, document.content_hash)

    beside = load_manifest(workspace, query_set.corpus_id).neighbours(names)
    shared = query_sets.shared_queries(workspace, query_set_id)
    queries: list[str] = []
    query_ids: list[str] = []
    document_of: list[int] = []
    index_of_content: dict[str, int] = {}
    index_of_id: dict[str, int] = {}
    texts: list[str] = []
    excluded_ids: dict[str, frozenset[str]] = {}
    for document_id, own_queries in wanted.items():
        content, content_hash = contents.get(document_id, ("", ""))
        if not content.strip():
            kind = "empty" if document_id in contents else "unknown"
            dropped[f"queries for {kind} documents"] += len(own_queries)
            continue

        index = index_of_content.setdefault(content_hash, len(texts))
        index_of_id[document_id] = index
        if index == len(texts):
            texts.append(content)

        for query_id, text in own_queries:
            query_ids.append(query_id)
            queries.append(text)
            document_of.append(index)

            # Other documents that are no negatives: they answer the query, or lie beside one that does. Also after an
            # edit or a filter, a query was written for all documents of its group.
            answers = [*shared.get(query_sets.plain_form(text), [document_id]), *together.get(document_id, ())]
            if len(answers) > 1 or document_id in beside:
                near = chain.from_iterable(beside.get(answer, ()) for answer in answers)
                excluded_ids[query_id] = frozenset((*answers, *near)) - {document_id}

    dropped[UNUSABLE] = failures.n
    pairs = PairSet(
        queries=queries,
        documents=texts,
        document_of=np.asarray(document_of, dtype=np.int64),
        query_set=query_set,
        dropped={reason: count for reason, count in dropped.items() if count},
        query_ids=query_ids,
        excluded_ids=excluded_ids,
        excluded_indices=_excluded_indices(query_ids, excluded_ids, index_of_id),
    )
    pairs.check()
    return pairs


def _excluded_indices(
    query_ids: Sequence[str], excluded_ids: Mapping[str, frozenset[str]], index: Mapping[str, int]
) -> NDArray[np.int64] | None:
    """``PairSet.excluded_indices`` from the index of each document's id; None where it would be empty."""
    return _padded([_indices(excluded_ids.get(query_id, ()), index) for query_id in query_ids])


def _indices(names: Iterable[str], index: Mapping[str, int]) -> list[int]:
    """The distinct indices of those names that have one, in the order of the names."""
    return list(dict.fromkeys(index[name] for name in names if name in index))


def _padded(rows: Sequence[Collection[int]]) -> NDArray[np.int64] | None:
    """These indices as an array, each row in order and -1 where it is shorter; None where all are empty."""
    width = max(map(len, rows), default=0)
    return np.array([sorted(row) + [-1] * (width - len(row)) for row in rows], dtype=np.int64) if width else None


def draw_pairs(
    workspace: Workspace,
    query_set_id: str,
    seed: int,
    *,
    per_doc: int | None = None,
    documents: int | None = None,
    budget: int | None = None,
    widest: int | None = None,
    among: Collection[str] | None = None,
    failures: Failures | None = None,
) -> PairSet:
    """The first ``per_doc`` queries of all documents, or of those drawn at random, see ``load_pairs``, ``drawn_rows``.

    The draw goes by the documents' content, so that query sets of one corpus give the same documents. ``among`` are
    the ids of the documents that may take part (None: all).
    """
    drawing = documents is not None or budget is not None
    pairs = load_pairs(workspace, query_set_id, per_doc=None if drawing else per_doc, failures=failures)

    if among is not None:
        rows = [row for row, name in enumerate(pairs.query_ids) if query_sets.document_of(name) in among]
        pairs = pairs.part(np.array(rows, dtype=np.int64)) if len(rows) < len(pairs) else pairs

    if drawing:
        keys = [shuffle_key(seed, text) for text in pairs.documents]
        order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
        pairs = pairs.part(
            drawn_rows(pairs.document_of, order, per_doc=per_doc, documents=documents, budget=budget, widest=widest)
        )
        pairs.check()

    return pairs


def joined(parts: Sequence[PairSet]) -> PairSet:
    """The pairs of several sets as one, without hard negatives; equal documents of two sets are one document.

    Documents that answer a query, or lie beside one that does, are no negatives of it, whichever set they come from.
    """
    index: dict[str, int] = {}
    maps = [np.array([index.setdefault(text, len(index)) for text in part.documents], dtype=np.int64) for part in parts]
    document_of = [places[part.document_of] for part, places in zip(parts, maps, strict=True)]

    # Of each corpus the documents by id, and of each question those that it was asked of.
    named: dict[str, dict[str, int]] = {}
    asked: dict[str, set[int]] = {}
    for part, own in zip(parts, document_of, strict=True):
        of_corpus = named.setdefault(part.query_set.corpus_id, {})
        for query_id, query, place in zip(part.query_ids, part.queries, own.tolist(), strict=True):
            of_corpus[query_sets.document_of(query_id)] = place
            asked.setdefault(query_sets.plain_form(query) or query, set()).add(place)

    excluded_indices: list[set[int]] = []
    for part, own in zip(parts, document_of, strict=True):
        of_corpus = named[part.query_set.corpus_id]
        for query_id, query, place in zip(part.query_ids, part.queries, own.tolist(), strict=True):
            near = _indices(part.excluded_ids.get(query_id, ()), of_corpus)
            excluded_indices.append(asked[query_sets.plain_form(query) or query].union(near) - {place})

    sets = [part.query_set for part in parts]
    name = " + ".join(query_set.name for query_set in sets)
    digest = sha256_text(*(query_set.content_hash for query_set in sets))[:16]
    complete = all(query_set.complete for query_set in sets)

    dropped: Counter[str] = Counter()
    queries: list[str] = []
    query_ids: list[str] = []
    languages: list[str] = []
    for part in parts:
        dropped.update(part.dropped)
        queries += part.queries
        query_ids += part.query_ids
        languages += [part.language] * len(part)

    return PairSet(
        queries=queries,
        documents=list(index),
        document_of=np.concatenate(document_of),
        query_set=replace(sets[0], name=name, content_hash=digest, complete=complete),
        dropped=dict(dropped),
        query_ids=query_ids,
        excluded_indices=_padded(excluded_indices),
        languages=languages,
    )


@dataclass(frozen=True)
class BatchOrder:
    """Which pairs each step sees: a fresh permutation per epoch, fixed by the seed, the last incomplete batch dropped.

    Equal batches are what gathering across processes needs. A batch larger than the data becomes one batch of all
    pairs. ``batch_size`` counts the pairs of all processes together and is rounded down to a multiple of ``processes``.
    ``total`` is the number of steps where that is fixed; the epochs follow from it.
    """

    pairs: int
    batch_size: int
    epochs: int
    seed: int = 0
    processes: int = 1
    total: int | None = None

    @property
    def rows(self) -> int:
        """Pairs per step on each process."""
        return min(self.batch_size, self.pairs) // self.processes

    @property
    def global_rows(self) -> int:
        """Pairs per step on all processes together."""
        return self.rows * self.processes

    @property
    def steps_per_epoch(self) -> int:
        return self.pairs // self.global_rows if self.rows else 0

    @property
    def steps(self) -> int:
        return self.steps_per_epoch * self.epochs if self.total is None else self.total

    @property
    def left_out_per_epoch(self) -> int:
        """Pairs that an epoch does not see (different ones each epoch): the incomplete batch at its end."""
        return self.pairs - self.steps_per_epoch * self.global_rows

    def resume_from(self, before: BatchOrder) -> BatchOrder | None:
        """The order in which these processes see, step by step, the pairs that those of ``before`` would have seen;
        None where there is none. Another number of processes can, where it divides the pairs of a step."""
        if before.processes == self.processes or before.global_rows % self.processes:
            return self if before == self else None
        shared = replace(self, batch_size=before.global_rows)
        return shared if replace(before, batch_size=shared.batch_size, processes=shared.processes) == shared else None

    def permutation(self, epoch: int) -> NDArray[np.int64]:
        """The order of all pairs in an epoch, counted from 0."""
        return np.random.default_rng([self.seed, epoch]).permutation(self.pairs)

    def batches(self, start: int = 0, process: int = 0) -> Iterator[NDArray[np.int64]]:
        """The rows of one process, step by step, from step ``start`` on."""
        order: NDArray[np.int64] | None = None
        for step in range(start, self.steps):
            epoch, position = divmod(step, self.steps_per_epoch)
            if order is None or position == 0:
                order = self.permutation(epoch)
            first = position * self.global_rows + process * self.rows
            yield order[first : first + self.rows]


Indices = NDArray[np.int64]


def drawn_rows(
    document_of: Indices,
    order: Indices,
    *,
    per_doc: int | None = None,
    documents: int | None = None,
    budget: int | None = None,
    widest: int | None = None,
) -> Indices:
    """The rows, ascending, that are the first ``per_doc`` queries (None: all) of the first documents of ``order``.

    ``document_of`` (n_pairs,), ``order`` (n_documents,). ``documents``: so many of them (None: all). ``budget``:
    exactly so many rows; only documents with ``per_doc`` queries take part, the last one with what is left of the
    budget. Where enough documents have ``widest`` queries (the most of any condition), all conditions draw among
    these, so that they take the same kind of document. InputError where the set cannot meet the budget.
    """
    counts = np.bincount(document_of)
    order = order[:documents]
    wanted = np.zeros(len(counts), dtype=np.int64)

    if budget is None or per_doc is None:
        wanted[order] = counts[order] if per_doc is None else per_doc

        if budget is not None:
            if counts[order].sum() < budget:
                raise InputError(f"There are {counts[order].sum():,} pairs, fewer than the {budget:,} asked for.")
            before = np.cumsum(counts[order]) - counts[order]
            wanted[order] = np.clip(budget - before, 0, counts[order])
    else:
        needed = -(-budget // per_doc)
        enough = order[counts[order] >= (widest or per_doc)]
        if len(enough) < needed:
            enough = order[counts[order] >= per_doc]

        if (there := len(enough)) < needed:
            raise InputError(
                f"{budget:,} pairs at Q/Doc {per_doc} take {needed:,} documents with {per_doc} queries each, and there "
                f"are {there:,}.",
                hint=f"A budget of {there * per_doc:,} is possible at this Q/Doc.",
            )

        chosen = enough[:needed]
        wanted[chosen] = per_doc
        wanted[chosen[-1]] = budget - per_doc * (needed - 1)

    return np.flatnonzero(ranks(document_of) < wanted[document_of])


def ranks(document_of: Indices) -> Indices:
    """The position of each row among the rows of its document, from 0; shape (n_pairs,)."""
    order = np.argsort(document_of, kind="stable")
    grouped = document_of[order]
    starts = np.flatnonzero(np.r_[True, grouped[1:] != grouped[:-1]]) if len(grouped) else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, len(grouped)])
    ranks = np.empty(len(document_of), dtype=np.int64)
    ranks[order] = np.arange(len(grouped)) - np.repeat(starts, lengths)
    return ranks


# Hard negatives per pair where the setting is left empty and the query set has them, as DRAGON trains.
AUTOMATIC = 1


def with_negatives(
    pairs: PairSet, workspace: Workspace, wanted: int | None, mined: Mapping[str, Sequence[str]] | None = None
) -> PairSet:
    """``pairs`` with the first ``wanted`` hard negatives of each query, or as they are where there are none.

    They are the query set's, or those of ``mined``, ids of documents by query. None takes one where there is any.
    Names of documents that the corpus does not have, or that are empty, are left out and counted. ConfigError where
    some were asked for and the set has none.
    """
    if wanted == 0:
        return pairs

    if mined is None:
        named = _named(pairs, workspace)
    else:
        of_query = zip(pairs.query_ids, pairs.queries, strict=True)
        named = {query_id: list(mined.get(text, ())) for query_id, text in of_query}

    most = max(map(len, named.values()), default=0)

    width = min(most, AUTOMATIC if wanted is None else wanted)
    if width == 0:
        if wanted is None:
            return pairs
        raise ConfigError(
            f"The query set {pairs.query_set.id} has no hard negatives.",
            hint="Leave hard_negatives empty, or use a set of dragon_s_faithful or an import with negatives.",
        )

    wanted_names = set(chain.from_iterable(named.values()))
    index, documents = _documents(pairs, workspace, wanted_names)
    missing = len(wanted_names - index.keys())

    negatives = np.full((len(pairs), width), -1, dtype=np.int64)
    for row, query_id in enumerate(pairs.query_ids):
        rows = [index[name] for name in named.get(query_id, ()) if name in index][:width]
        negatives[row, : len(rows)] = rows

    dropped = dict(pairs.dropped)

    if missing:
        dropped["hard negatives that are unknown or empty documents"] = missing

    excluded_indices = _excluded_indices(pairs.query_ids, pairs.excluded_ids, index)
    return replace(pairs, documents=documents, negatives=negatives, dropped=dropped, excluded_indices=excluded_indices)


def check_teacher(query_set: QuerySet) -> None:
    """Raise ConfigError for a set without soft labels."""
    if not query_set.parameters.get("teacher"):
        raise ConfigError(
            f"The query set {query_set.id} has no soft labels.",
            hint="Make a set that has them: queries mine SET --teacher MODEL. Or set distil to 0.",
        )


def with_teacher(
    pairs: PairSet, workspace: Workspace, labels: Mapping[tuple[str, str], Sequence[float]] | None = None
) -> PairSet:
    """``pairs`` with a teacher's scores of each query's document and its hard negatives as soft labels: the query
    set's, or ``labels`` by document id and query."""
    if labels is None:
        check_teacher(pairs.query_set)
        labels = {
            (line.document_id, text.strip()): scores
            for line in query_sets.read_queries(workspace, pairs.query_set.id)
            for text, scores in zip(line.queries, line.teacher, strict=False)
        }

    assert pairs.negatives is not None  # a set with a teacher has them

    teacher = np.full((len(pairs), 1 + pairs.negatives.shape[1]), np.nan)
    for row, (query_id, text) in enumerate(zip(pairs.query_ids, pairs.queries, strict=True)):
        scores = labels.get((query_sets.document_of(query_id), text), ())
        present = 1 + int((pairs.negatives[row] >= 0).sum())
        # Without the document of a label, labels would shift.
        if scores and present == min(len(scores), teacher.shape[1]):
            teacher[row, :present] = scores[:present]

    return replace(pairs, teacher=teacher)


def _named(pairs: PairSet, workspace: Workspace) -> dict[str, list[str]]:
    """Query id → the ids of its hard negatives, in their order, without its own document and those never to be one."""
    named: dict[str, list[str]] = {}

    def extend(query_id: str, names: Iterable[str], own: str) -> None:
        left_out = {own, *pairs.excluded_ids.get(query_id, ()), *named.setdefault(query_id, [])}
        named[query_id] += [name for name in dict.fromkeys(names) if name not in left_out]

    if pairs.query_set.hard_negatives:
        wanted = set(pairs.query_ids)
        for line in query_sets.read_queries(workspace, pairs.query_set.id):
            for (query_id, _), names in zip(line.with_ids(), line.negatives, strict=False):
                if query_id in wanted:
                    extend(query_id, names, line.document_id)
        return named
    if not query_sets.files(workspace, pairs.query_set.id).rankings.exists():
        return {}
    by_text = {
        (query_sets.document_of(query_id), text): query_id
        for query_id, text in zip(pairs.query_ids, pairs.queries, strict=True)
    }
    for ranking in query_sets.read_rankings(workspace, pairs.query_set.id):
        for document_id in ranking["positives"]:
            query_id = by_text.get((document_id, ranking["query"].strip()), "")
            if query_id:
                extend(query_id, ranking["negatives"], document_id)
    return named


def _documents(pairs: PairSet, workspace: Workspace, wanted: set[str]) -> tuple[dict[str, int], list[str]]:
    """Document id → its index, and the documents, with those of ``wanted`` that are new behind."""
    documents = list(pairs.documents)
    by_content = {content: index for index, content in enumerate(documents)}
    index: dict[str, int] = {}
    for document in iter_documents(workspace, pairs.query_set.corpus_id):
        if document.id in wanted and document.content.strip() and document.content not in by_content:
            by_content[document.content] = len(documents)
            documents.append(document.content)
        if document.content in by_content:
            index[document.id] = by_content[document.content]
    return index, documents
