"""The answer (one query, paraphrases, diverse; train at all?): choice, headline, badge, findings, limits, settling.

``decide`` takes the cheapest option that none is shown to beat, from the evidence alone. Page, command line and exports
render its ``Decision`` and decide nothing themselves. tests/principle/situations.yaml states what it must say when.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from cdp.base.text import counted, signed
from cdp.complexity import language_of
from cdp.principle.evidence import (
    BM25,
    DIVERSE,
    HUMAN,
    HYBRID,
    MODEL,
    PARAPHRASE,
    PEOPLE,
    RERANKED,
    TEMPLATE,
    UNTRAINED,
    Arm,
    Basis,
    Evidence,
    Task,
)
from cdp.principle.simultaneous import simultaneous

# A dearer option that may bring more than this is worth another test.
WORTH_POINTS = 2.0

# Below these an answer says how little it rests on.
FEW_JUDGED = 50
# Begins the limit of a model's judgments that no label checks.
UNCHECKED = "No person checked the judgments"
FEW_DOCUMENTS = 500

# Of trainings whose steps differ by more than this ratio, a difference may be the steps' alone.
SAME_STEPS = 1.1

MOST_LIMITS = 3

# To have more than so many times the queries or the seeds is no advice: both grow then.
MOST_FACTOR = 10

RETRIEVER = "retriever"
NO_EVIDENCE, ELSEWHERE = "no evidence", "other datasets only"

POINTS = "NDCG@10 points"

# Of the basis in ``--json``.
BASIS_SHOWN = (
    "study", "name", "retriever", "benchmark", "split", "documents", "unit", "judged_queries", "written_by",
    "judged_by", "judge", "labels", "in_domain",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """How many points ``option`` scores above ``against``, with an interval that holds together with all others of its
    question. Not ``comparable``: trained for other numbers of steps, so nothing is shown by it."""

    option: Arm
    against: Arm
    points: float
    low: float
    high: float
    query_variance: float = 0.0
    seed_variance: float = 0.0
    factor: float = 0.0
    comparable: bool = True

    @property
    def gains(self) -> bool:
        return self.comparable and self.low > 0

    @property
    def loses(self) -> bool:
        return self.comparable and self.high < 0

    @property
    def interval(self) -> str:
        return f"(95% {signed(self.low, 1)} to {signed(self.high, 1)})"

    @property
    def figures(self) -> str:
        """``+3.1 (95% +1.2 to +5.0)``."""
        return f"{signed(self.points, 1)} {self.interval}"

    @property
    def verdict(self) -> str:
        """``gains +3.1 (95% …)``, ``loses …`` or ``cannot tell, at most ±2.0``."""
        if not self.comparable:
            return f"{signed(self.points, 1)}, which unequal steps may have made"
        if self.gains or self.loses:
            return f"{'gains' if self.gains else 'loses'} {signed(self.points, 1)} {self.interval}"
        return f"cannot tell, at most ±{max(-self.low, self.high, 0.0):.1f}"

    @property
    def sentence(self) -> str:
        return f"{name_of(self.option)} over {name_of(self.against)}: {self.verdict}"


@dataclass(frozen=True, slots=True)
class Choice:
    """The option to take: the kind of ``Arm``, RETRIEVER (choose another one) or empty, and its Q/Doc."""

    kind: str = ""
    per_doc: int = 0


@dataclass(frozen=True, slots=True)
class Settling:
    """What would settle an answer, in a sentence; the numbers are 0 where they need not grow."""

    text: str
    queries: int = 0
    seeds: int = 0
    documents: int = 0


@dataclass(frozen=True)
class Decision:
    """``settled`` is whether the choice stands; ``figure`` is the headline's difference, ``options`` all that was
    measured, the cheapest first, ``findings`` the other differences in sentences, ``corrected`` the figure as people's
    labels correct it where a model judged, ``equal_pairs`` the differences of the second question; ``rule`` says how
    the published rule relates to the measurement, ``readers`` names retrievers where the answer is to choose another
    one."""

    headline: str
    choice: Choice
    badge: str
    basis: Basis | None = None
    seeds: int = 0
    steps: int = 0
    limits: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    corrected: str = ""
    settled: bool = False
    settling: Settling | None = None
    rule: str = ""
    figure: ArmDifference | None = None
    options: tuple[Arm, ...] = ()
    comparisons: tuple[ArmDifference, ...] = ()
    equal_pairs: tuple[ArmDifference, ...] = ()
    readers: tuple[str, ...] = ()
    evidence: Evidence | None = field(default=None, repr=False)

    @property
    def measured(self) -> bool:
        """Whether it rests on an own study."""
        return self.basis is not None and bool(self.basis.study)

    @property
    def rests_on(self) -> str:
        """The basis in one line; empty without evidence."""
        basis = self.basis
        if basis is None:
            return ""
        if not self.measured:
            return f"{basis.name}, trained at equal documents."
        parts = [
            f"{basis.name}: {basis.retriever}",
            f"{counted(basis.documents, basis.unit)}",
            f"{basis.judged_queries:,} queries judged by {basis.judge} ({basis.benchmark} {basis.split})"
            if basis.judge
            else f"{basis.judged_queries:,} judged queries ({basis.benchmark} {basis.split})",
            counted(self.steps, "step") if self.steps else "",
            counted(self.seeds, "seed"),
        ]
        return " · ".join(part for part in parts if part)

    def over(self, against: Arm) -> list[ArmDifference]:
        """The differences of all options to this one, the cheapest first."""
        return [c for c in self.comparisons if c.against is against]

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        basis = None
        if b := self.basis:
            basis = {name: getattr(b, name) for name in BASIS_SHOWN}
            basis |= {"unjudged": max(0, b.unjudged), "steps": self.steps, "seeds": self.seeds}
        plain = ("headline", "settled", "badge", "limits", "findings", "corrected", "rule")
        return {
            **{name: getattr(self, name) for name in plain},
            "choice": asdict(self.choice),
            "basis": basis,
            "settle": asdict(self.settling) if self.settling else None,
            "figure": _row(self.figure) if self.figure else None,
            "options": [
                {
                    **{name: getattr(arm, name) for name in ("kind", "per_doc", "held", "documents", "pairs", "steps")},
                    "name": name_of(arm), "ndcg@10": arm.mean, "seeds": len(arm.scores),
                }
                for arm in (self.evidence.arms if self.evidence else ())
            ],
            "differences": [_row(c) for c in (*self.comparisons, *self.equal_pairs)],
        }  # fmt: skip


def _row(c: ArmDifference) -> dict[str, Any]:
    return {
        "option": name_of(c.option), "against": name_of(c.against), "held": c.option.held, "points": c.points,
        "low": c.low, "high": c.high, "comparable": c.comparable,
    }  # fmt: skip


# Names of the options without training queries: as something compared, and as something to do.
FIXED = {
    UNTRAINED: ("the untrained retriever", "keep {} untrained"),
    BM25: ("BM25", "use BM25"),
    HYBRID: ("the hybrid", "combine BM25 with the untrained retriever"),
    RERANKED: ("the reranked", "rerank"),
}

# One and several training queries by their method.
WRITTEN = {
    DIVERSE: ("one query", "different queries"),
    PARAPHRASE: ("one paraphrase", "paraphrases"),
    HUMAN: ("the human queries", "human queries"),
}


def name_of(option: Arm | Choice) -> str:
    """An option in words: ``5 different queries``, ``one paraphrase``, ``BM25``."""
    if option.kind in FIXED:
        return FIXED[option.kind][0]
    kind, _, by = option.kind.partition(" by ")
    by = by and f" by {by}"
    one, several = WRITTEN.get(kind, (f"one query of {kind}", f"queries of {kind}"))
    return f"{one}{by}" if option.per_doc == 1 else f"{option.per_doc} {several}{by}"


def action_of(option: Arm | Choice, retriever: str, unit: str = "document") -> str:
    """What to do: ``write 5 different queries per document``, ``use BM25``."""
    if option.kind in FIXED:
        return FIXED[option.kind][1].format(retriever)
    if option.kind == HUMAN:
        return f"train on {name_of(option)}"
    return f"write {name_of(option)} per {unit}"


def _cost(arm: Arm) -> tuple[int, int]:
    """The order of cost: no training, then human queries (they are there), then one and several by an LLM."""
    fixed = (UNTRAINED, BM25, HYBRID)
    return (fixed.index(arm.kind), 0) if arm.kind in fixed else (3 if arm.kind == HUMAN else 4, arm.per_doc)


def decide(evidence: Sequence[Evidence], task: Task) -> Decision:
    """Return the cheapest option that none is shown to beat, from the best evidence; the newest comes first."""
    own = [e for e in evidence if e.basis.study and _answers(e)]
    unread = [e for e in evidence if not e.basis.reads_language]
    if own:
        lead = max(own, key=_design)
        lead = replace(lead, arms=(*lead.arms, *_fixed_elsewhere(lead, own)))
        return _measured(lead, own, task) if lead.basis.reads_language else _of_language(lead, task)
    if unread:
        return _of_language(unread[0], task)
    prior = next((e for e in evidence if e.expected), None)
    if prior is not None:
        return _expected(prior)
    limits = (task.unknown,) if task.unknown else ()
    return Decision("Nothing is known about this task yet: test it on your data.", Choice(), NO_EVIDENCE, limits=limits)


def _answers(e: Evidence) -> bool:
    """Whether it compares a training with something, on two queries or more."""
    arms = [arm for arm in e.arms if not arm.held]
    return len(arms) > 1 and any(arm.trained for arm in arms) and arms[0].scores.shape[1] > 1


def _design(e: Evidence) -> tuple[Any, ...]:
    """How good a study's design is; the best leads."""
    b = e.basis
    trained = [arm for arm in e.arms if arm.trained and not arm.held]
    return (
        b.reads_language,
        not b.elsewhere,
        not b.stale,
        (TEMPLATE, MODEL, PEOPLE).index(b.judged_by),
        b.equal_steps,
        b.dev_chosen,
        len({arm.per_doc for arm in trained}) > 1,
        min((len(arm.scores) for arm in trained), default=0) > 1,
        b.finished >= b.planned,
        b.judged_queries,
        b.documents,
        max((arm.mean for arm in trained), default=0.0),
    )


def _fixed_elsewhere(lead: Evidence, own: Iterable[Evidence]) -> list[Arm]:
    """Options without training that only other studies measured, on the very queries of the lead."""
    present = {arm.kind for arm in lead.arms}
    found: dict[str, Arm] = {}
    for e in own:
        if not lead.basis.queries or e.basis.queries != lead.basis.queries or e.basis.stale:
            continue
        for arm in e.arms:
            # The hybrid and the untrained scores are those of one retriever, BM25 has none.
            fits = arm.kind == BM25 or (not arm.trained and e.basis.retriever == lead.basis.retriever)
            if fits and arm.kind not in present and arm.scores.shape[1] == lead.arms[0].scores.shape[1]:
                found.setdefault(arm.kind, arm)
    return list(found.values())


def _comparable(first: Arm, second: Arm) -> bool:
    if not (first.trained and second.trained and first.steps and second.steps):
        return True
    return max(first.steps, second.steps) <= SAME_STEPS * min(first.steps, second.steps)


class _Question:
    """The options of one question, the cheapest first, each compared with every other one, both ways, at once."""

    def __init__(self, arms: Iterable[Arm]) -> None:
        self.options = sorted(arms, key=lambda a: (*_cost(a), -a.mean))
        d = simultaneous([arm.scores for arm in self.options])
        reach = d.reach
        self.all = [
            ArmDifference(
                option, against, float(d.points[i, j]), float(d.points[i, j] - reach[i, j]),
                float(d.points[i, j] + reach[i, j]), float(d.query_variance[i, j]), float(d.seed_variance[i, j]),
                float(d.factor[i, j]), _comparable(option, against),
            )
            for j, against in enumerate(self.options)
            for i, option in enumerate(self.options)
            if i != j
        ]  # fmt: skip

    @property
    def trained(self) -> list[Arm]:
        return [arm for arm in self.options if arm.trained]

    def of(self, option: Arm, against: Arm) -> ArmDifference:
        return next(c for c in self.all if c.option is option and c.against is against)

    def choose(self, options: Sequence[Arm]) -> Arm:
        """The cheapest that none of ``options`` is shown to beat; of two as dear the better one."""
        beaten = [c.against for c in self.all if c.gains and c.option in options]
        return next(option for option in options if option not in beaten)


def _measured(lead: Evidence, own: Sequence[Evidence], task: Task) -> Decision:
    b = lead.basis
    q = _Question(arm for arm in lead.arms if not arm.held and arm.kind != RERANKED)
    choice = q.choose(q.options)
    # What a dearer option may bring, as far as the interval reaches.
    may = max((q.of(o, choice) for o in q.options if _cost(o) > _cost(choice)), key=lambda c: c.high, default=None)
    open_to_more = may is not None and may.high > WORTH_POINTS
    nothing = open_to_more and not any(c.gains for c in q.all)
    seeds = min(len(arm.scores) for arm in q.trained)
    pairs = _at_equal_pairs(lead)
    unsettled = bool(
        b.stale or b.elsewhere or seeds < 2 or b.finished < b.planned or not b.equal_steps or _small_sample(b)
    )
    figure: ArmDifference | None
    if nothing:
        assert may is not None
        best = max(q.options, key=lambda a: a.mean)
        figure = q.of(best, q.options[0]) if best is not q.options[0] else may
        text = f"cannot tell yet: {name_of(figure.option)} over {name_of(figure.against)} is {_points(figure)}"
    elif open_to_more:
        assert may is not None
        figure, unsettled = may, True
        text = (
            f"so far, {action_of(choice, b.retriever, b.unit)}; {name_of(may.option)} may bring up to "
            f"{signed(may.high, 1)} {POINTS} {may.interval}"
        )
    else:
        figure, clause = _why(q, choice)
        text = f"{'so far, ' if unsettled else ''}{action_of(choice, b.retriever, b.unit)}{clause}"
    if b.judged_by == TEMPLATE:
        text = f"on template queries, {text}"
    return Decision(
        headline=f"{text[0].upper()}{text[1:]}.",
        choice=Choice() if nothing else Choice(choice.kind, choice.per_doc),
        badge=_badge(b),
        basis=b,
        seeds=seeds,
        steps=max(arm.steps for arm in q.trained),
        limits=tuple(_limits(lead, own, q, seeds)[:MOST_LIMITS]),
        findings=(*_findings(q, choice, figure, nothing, b.unit), *(f"At equal pairs, {c.sentence}" for c in pairs)),
        settled=not (unsettled or nothing or b.judged_by == TEMPLATE),
        settling=_settling(lead, may if open_to_more else None, seeds),
        rule=_rule(lead, q, task),
        figure=figure,
        options=tuple(q.options),
        comparisons=tuple(q.all),
        equal_pairs=pairs,
        evidence=lead,
    )


def _points(c: ArmDifference, over: str = "") -> str:
    return f"{signed(c.points, 1)} {POINTS} {over and f'over {over} '}{c.interval}"


def _why(q: _Question, choice: Arm) -> tuple[ArmDifference | None, str]:
    """(the headline's figure, its clause): what the choice is better than."""
    others = [arm for arm in q.trained if arm is not choice]
    if not choice.trained and others:
        over_best = q.of(choice, max(others, key=lambda a: a.mean))
        if over_best.gains:
            return over_best, f": {_points(over_best, 'the best training')}"
        brings = max((q.of(arm, choice) for arm in others), key=lambda c: c.high)
        return brings, f": training brings at most {signed(brings.high, 1)} {POINTS} {brings.interval}"
    cheaper = [arm for arm in q.options if _cost(arm) < _cost(choice)]
    single = [arm for arm in cheaper if arm.per_doc == 1]
    candidates = single or cheaper or others
    if not candidates:
        return None, ""
    c = q.of(choice, max(candidates, key=lambda a: a.mean))
    return c, f": {_points(c, 'the best single query' if single else name_of(c.against))}"


def _findings(q: _Question, choice: Arm, figure: ArmDifference | None, nothing: bool, unit: str) -> Iterator[str]:
    """The other differences that a person asks about, in sentences: several over one, and all over the choice."""
    if choice.kind in (BM25, HYBRID) and q.trained and not nothing:
        best = q.choose(q.trained)
        singles = [arm for arm in q.trained if arm.per_doc == 1 and arm is not best]
        over = q.of(best, max(singles, key=lambda a: a.mean)) if singles else None
        single = f", {signed(over.points, 1)} {over.interval} over {name_of(over.against)}" if over else ""
        yield f"If you train: {action_of(best, '', unit)}{single}"
    several = sorted((arm for arm in q.trained if arm.per_doc > 1), key=lambda a: (-a.per_doc, a.kind))
    singles = [arm for arm in q.trained if arm.per_doc == 1]
    largest = several[0].per_doc if several else 0
    wanted = [(arm, one) for arm in several for one in singles if one.kind == arm.kind]
    wanted += [(choice, arm) for arm in q.options if arm.kind == UNTRAINED and choice.trained]
    wanted += [(arm, choice) for arm in [*several, *singles] if arm.per_doc in (1, largest)]
    # The headline has its figure already; a training that loses against no training is told as such.
    told = [(figure.option, figure.against)] if figure else []
    told += [(against, option) for option, against in told if choice.trained]
    for option, against in wanted:
        if option is not against and not any(option is a and against is b for a, b in told):
            told += [(option, against), (against, option)]
            text = q.of(option, against).sentence
            yield f"{text[0].upper()}{text[1:]}"


def _at_equal_pairs(lead: Evidence) -> tuple[ArmDifference, ...]:
    """The second question: several queries on fewer documents over one on each, for as many pairs."""
    held = [arm for arm in lead.arms if arm.held]
    if not held:
        return ()
    q = _Question([*held, *(arm for arm in lead.arms if arm.per_doc == 1 and not arm.held)])
    return tuple(q.of(arm, one) for arm in held for one in q.options if one.kind == arm.kind and one.per_doc == 1)


def _small_sample(b: Basis) -> bool:
    return b.documents < min(FEW_DOCUMENTS, b.of_documents / 2)


def _badge(b: Basis) -> str:
    if b.judged_by == MODEL:
        who = f"queries written by {b.queries_by}, judged by {b.judge}" if b.queries_by else "judged by a model"
        return f"{who}, {counted(b.labels, 'query', 'queries') if b.labels else 'no queries'} by people"
    return {PEOPLE: "judged by people", TEMPLATE: "template judgments"}[b.judged_by]


def _limits(lead: Evidence, own: Sequence[Evidence], q: _Question, seeds: int) -> list[str]:
    """What makes the answer weak, the hardest first."""
    b = lead.basis
    steps = [arm.steps for arm in q.trained]
    template, sampled = TEMPLATE in b.written_by, b.sampled_from > b.judged_queries
    told = [
        (bool(b.stale), f"The {' and '.join(b.stale)} changed since this was measured: test again."),
        (b.judged_by == TEMPLATE, "Template queries judged this; people's queries may rank the options differently."),
        (b.unjudged > 0, f"{counted(b.unjudged, 'document')} of the first ten have no judgment and count 0."),
        (bool(b.elsewhere), f"Measured on other {b.elsewhere} than yours."),
        (not b.equal_steps, f"Training steps differ ({min(steps)} to {max(steps)}): more queries also trained longer."),
        (b.finished < b.planned, f"{b.finished} of {b.planned} trainings are done."),
        (seeds < 2, "One seed: the spread between trainings is unknown."),
        (b.judged_queries < FEW_JUDGED, f"Only {b.judged_queries} judged queries."),
        (_small_sample(b), f"Trained on {b.documents:,} of {b.of_documents:,} {b.unit}s."),
        *((True, f"Another study, {e.basis.name}, says the opposite.") for e in _opposed(lead, own)),
        (not b.dev_chosen, "No dev queries chose the checkpoint, so some trainings may be past their best."),
        (bool(b.queries_by), f"{b.queries_by} wrote the judged queries; people may ask differently."),
        (b.judged_by == MODEL and not b.labels, f"{UNCHECKED} of {b.judge or 'the model'}."),
        (template, "Templates wrote the training queries; an LLM's queries may gain more or less."),
        (b.in_domain, "The judged queries resemble the training queries (in-domain): other tasks may differ."),
        (sampled, f"Evaluated on {b.judged_queries:,} sampled queries (of {b.sampled_from:,})."),
        (not any(arm.kind == BM25 for arm in q.options), "BM25 was not measured."),
    ]
    return [text for applies, text in told if applies]


def _direction(e: Evidence, q: _Question | None = None) -> int:
    """Whether several different queries beat one (1), lose (-1) or neither is shown (0)."""
    arms = [arm for arm in (q.options if q else e.arms) if arm.trained and not arm.held and arm.kind == DIVERSE]
    several = [arm for arm in arms if arm.per_doc > 1]
    one = next((arm for arm in arms if arm.per_doc == 1), None)
    if not several or one is None:
        return 0
    c = (q or _Question([one, *several])).of(max(several, key=lambda a: a.per_doc), one)
    return 1 if c.gains else -1 if c.loses else 0


def _opposed(lead: Evidence, own: Sequence[Evidence]) -> list[Evidence]:
    """Other studies of the same task that show the opposite of the lead."""
    direction = _direction(lead)
    others = [
        e for e in own
        if e.basis.study != lead.basis.study and not e.basis.stale and e.basis.elsewhere == lead.basis.elsewhere
    ]  # fmt: skip
    return [e for e in others if direction and _direction(e) == -direction]


def _rule(lead: Evidence, q: _Question, task: Task) -> str:
    """How the published rule relates to the measurement. Only one of the rule's own kind can contradict it."""
    b, says = lead.basis, {"avoid": -1, "recommend": 1}.get(task.rule, 0)
    if not says:
        return ""
    apart = {
        "its judged queries resemble the training queries": b.in_domain == (task.domain == "ood"),
        "its trainings took different numbers of steps": not b.equal_steps,
        "no dev queries chose its checkpoints": not b.dev_chosen,
        "template queries judged it": b.judged_by == TEMPLATE,
        "it is of another task": bool(b.elsewhere),
    }
    rule = f"The published rule ({task.rule} different queries)"
    why = next((reason for reason, holds in apart.items() if holds), "")
    if why:
        return f"{rule} does not apply to this measurement: {why}."
    direction = _direction(lead, q)
    if not direction:
        return f"{rule} is neither confirmed nor refuted by this measurement."
    if direction != says:
        return f"{rule} contradicts this measurement, which goes first."
    return "This measurement agrees with the published rule."


def _settling(lead: Evidence, may: ArmDifference | None, seeds: int) -> Settling | None:
    """What would settle the answer; None where it is settled."""
    b = lead.basis
    if b.finished < b.planned:
        return Settling("Finishing the study would settle more.")
    if b.judged_by == TEMPLATE:
        return Settling(
            f"{FEW_JUDGED} or more queries judged by people or a model would settle it.", queries=FEW_JUDGED
        )
    if b.stale or b.elsewhere:
        return Settling("A test on your documents and queries as they are now would settle it.")
    if not b.equal_steps:
        return Settling("A test with equal training steps would settle it.")
    if _small_sample(b):
        return Settling(f"A test on {b.of_documents:,} {b.unit}s would settle more.", documents=b.of_documents)
    if seeds < 2:
        return Settling("Three seeds would show the spread between trainings.", seeds=3)
    if may is None:
        return None
    # Settled is either a gain that is shown or one of at most WORTH_POINTS: the interval's reach that takes less.
    reach = max(may.points, WORTH_POINTS - may.points) if may.points > 0 else WORTH_POINTS - may.points
    allowed = (reach / may.factor) ** 2
    by_queries = may.query_variance / (allowed - may.seed_variance) if allowed > may.seed_variance else math.inf
    by_seeds = may.seed_variance / (allowed - may.query_variance) if allowed > may.query_variance else math.inf
    if min(by_queries, by_seeds) > MOST_FACTOR:
        by_queries = by_seeds = (may.query_variance + may.seed_variance) / allowed
        queries, more = _rounded(b.judged_queries * by_queries), math.ceil(seeds * by_seeds)
        return Settling(f"About {queries:,} judged queries and {more} seeds would settle it.", queries, more)
    if by_seeds < by_queries:
        more = math.ceil(seeds * by_seeds)
        return Settling(f"About {more} seeds (now {seeds}) would settle it.", seeds=more)
    queries = _rounded(b.judged_queries * by_queries)
    return Settling(f"About {queries:,} judged queries (now {b.judged_queries:,}) would settle it.", queries)


def _rounded(n: float) -> int:
    """To two digits, upwards: an estimate."""
    unit = 10 ** max(0, int(math.log10(n)) - 1)
    return math.ceil(n / unit) * unit


def _of_language(lead: Evidence, task: Task) -> Decision:
    """The retriever does not read the language: what it gains from queries says nothing."""
    b = lead.basis
    names = f" ({' or '.join(task.readers[:2])})" if task.readers else ""
    text = f"Choose a retriever for {language_of(task.language).name}{names}: {b.retriever}"
    figure = None
    options: tuple[Arm, ...] = ()
    lexical = [arm for arm in lead.arms if arm.kind == BM25]
    trained = [arm for arm in lead.arms if arm.trained and not arm.held]
    if lexical and trained:
        q = _Question([*lexical, *(arm for arm in lead.arms if not arm.held and arm.kind not in (BM25, RERANKED))])
        options = tuple(q.options)
        c = q.of(lexical[0], max(trained, key=lambda a: a.mean))
        figure = c if c.gains else None
    if figure is not None:
        below = f"{figure.points:.1f} {POINTS} below BM25 (95% {figure.low:.1f} to {figure.high:.1f})"
        text += f", which does not read it, is {below}."
    else:
        text += " does not read it."
    return Decision(
        headline=text,
        choice=Choice(RETRIEVER),
        badge=_badge(b) if lead.arms else NO_EVIDENCE,
        basis=b if lead.arms else None,
        seeds=min((len(arm.scores) for arm in trained), default=0),
        steps=max((arm.steps for arm in trained), default=0),
        figure=figure,
        options=options,
        readers=tuple(task.readers),
        evidence=lead,
    )


def _expected(prior: Evidence) -> Decision:
    """What other datasets let expect; never settled for a task of its own."""
    shown = [e for e in prior.expected if e.low > 0]
    e = min(shown, key=lambda e: e.per_doc) if shown else max(prior.expected, key=lambda e: e.points)
    choice = Choice(DIVERSE, e.per_doc if shown else 1)
    several = name_of(Choice(DIVERSE, e.per_doc))
    action = action_of(choice, "", prior.basis.unit)
    figure = f"{signed(e.points, 1)} {POINTS} (95% {signed(e.low, 1)} to {signed(e.high, 1)})"
    return Decision(
        headline=f"So far, {action}; judging by other datasets, {several} bring {figure}.",
        choice=choice,
        badge=ELSEWHERE,
        basis=prior.basis,
        limits=("None of it is from your data.", *prior.limits)[:MOST_LIMITS],
        settling=Settling("A test on your data would settle it."),
        evidence=prior,
    )
