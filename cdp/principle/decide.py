"""The answer (one query, paraphrases, diverse; train at all?): choice, headline, badge, findings, limits, settling.

``decide`` takes the cheapest option that is shown to lie at most 2 points below the best (Hsu 1984), from the evidence
alone. Page, command line and exports render its ``Decision`` and decide nothing themselves.
tests/principle/situations.yaml states what it must say when.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import permutations, product, starmap
from operator import attrgetter
from typing import Any

import numpy as np

from cdp.base.condition import BM25, DIVERSE, HYBRID, UNTRAINED, Condition
from cdp.base.statistics import FEWEST_CLUSTERS, Floats, count_clusters
from cdp.base.text import capital, counted, signed
from cdp.complexity import language_of
from cdp.principle.evidence import MODEL, PEOPLE, TEMPLATE, Arm, Basis, Evidence, Task
from cdp.principle.options import action_of, cost, does, name_of, one_over
from cdp.principle.simultaneous import DRAWS, MAX_WRONG, STEPS, needed, simultaneous

# An option that is shown to lie at most this far below the best is as good.
WORTH_POINTS = 2.0

# Smaller differences come from rounding: every query scored the same.
SAME_POINTS = 1e-6

# With a larger share of unjudged documents in an option's first tens, the answer is withheld.
MAX_UNJUDGED = 0.1

# Below these an answer says how little it rests on.
FEW_JUDGED = 50
# Begins what people's labels do to the figures.
CORRECTED = "Corrected by"
FEW_DOCUMENTS = 500

# Of trainings whose steps differ by more than this ratio, a difference may be the steps' alone.
SAME_STEPS = 1.1

MAX_LIMITS = 3

# Labelled queries to begin with.
LABELS = 30

RETRIEVER = "retriever"
BESIDE = "A test with other retrievers beside it would settle more."
NO_EVIDENCE, ELSEWHERE = "no evidence", "other datasets only"

POINTS = "NDCG@10 points"

# Facts of an option, for map, filter and the keys of sorting.
_trained, _mean, _n_seeds, _per_doc = map(attrgetter, ("trained", "mean", "n_seeds", "per_doc"))

# What is chosen where nothing is.
NOTHING = Condition("", "")

# Of the basis in ``--json``.
BASIS_SHOWN = (
    "study", "name", "retriever", "benchmark", "split", "documents", "unit", "judged_queries", "written_by",
    "judged_by", "judge", "labels", "in_domain",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """How many points ``option`` scores above ``against``, with an interval that holds together with all others of its
    question at the ``level`` that is said. Not ``comparable``: trained for other numbers of steps, so nothing is shown
    by it."""

    option: Arm
    against: Arm
    points: float
    low: float
    high: float
    level: str = "95%"
    comparable: bool = True

    @property
    def gains(self) -> bool:
        return self.comparable and self.low > 0

    @property
    def loses(self) -> bool:
        return self.comparable and self.high < 0

    @property
    def interval(self) -> str:
        return f"({self.level} {signed(self.low, 1)} to {signed(self.high, 1)})"

    @property
    def figures(self) -> str:
        """``+3.1 (95% +1.2 to +5.0)``, for a table that says the unit."""
        return f"{signed(self.points, 1)} {self.interval}"

    @property
    def measured(self) -> str:
        """``+3.1 points (95% +1.2 to +5.0)``."""
        return f"{signed(self.points, 1)} points {self.interval}"

    @property
    def verdict(self) -> str:
        """``gains 3.1 points (95% …)``, ``loses 2.5 points (95% …)`` or ``cannot tell, +0.3 points (95% …)``."""
        if not self.comparable:
            return f"{signed(self.points, 1)} points, which unequal steps may have made"
        if max(abs(self.low), abs(self.high)) < SAME_POINTS:
            return "no difference on any judged query"
        # The verb says the sign.
        amount = f"{abs(self.points):.1f} points {self.interval}"
        if self.gains:
            return f"gains {amount}"
        if self.loses:
            return f"loses {amount}"
        return f"cannot tell, {self.measured}"

    @property
    def sentence(self) -> str:
        return f"{one_over(self.option.condition, self.against.condition)}: {self.verdict}"


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
    measured, the cheapest first, ``findings`` the other differences in sentences, ``equal_pairs`` the differences of
    the second question; ``rule`` says how the published rule relates to the measurement, ``readers`` names retrievers
    where the answer is to choose another one."""

    headline: str
    choice: Condition
    badge: str
    basis: Basis | None = None
    seeds: int = 0
    steps: int = 0
    limits: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
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

        queries = f"{basis.judged_queries:,} judged queries"
        if basis.judge:
            queries = f"{basis.judged_queries:,} queries judged by {basis.judge}"

        parts = [f"{basis.name}: {basis.trained}", counted(basis.documents, basis.unit)]
        parts.append(f"{queries} ({basis.benchmark} {basis.split})")
        if self.steps:
            parts.append(counted(self.steps, "step"))
        parts.append(counted(self.seeds, "seed"))

        return " · ".join(parts)

    @property
    def text(self) -> str:
        """The headline, what it rests on, its limits and the other findings, a line each."""
        badge = self.badge
        if self.basis and self.basis.written_by:
            badge += f"; training queries by {self.basis.written_by}"

        lines = [self.headline, f"[{badge}]", self.rests_on]
        lines += [f"! {text}" for text in self.limits]
        if self.settling:
            lines.append(self.settling.text)

        lines += [f"- {text}" for text in self.findings]
        lines.append(self.rule)
        if self.measured and self.basis:
            lines.append(f"Study: study report {self.basis.study}")

        return "\n".join(filter(None, lines))

    @property
    def chosen(self) -> Arm | None:
        """The option that is chosen, None where it was not measured."""
        return next((arm for arm in self.options if arm.condition == self.choice), None)

    def over(self, against: Arm) -> list[ArmDifference]:
        """The differences of all options to this one, the cheapest first."""
        return [c for c in self.comparisons if c.against is against]

    def to_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        basis = None
        if b := self.basis:
            basis = {name: getattr(b, name) for name in BASIS_SHOWN}
            basis |= {"unjudged": max(0, b.unjudged), "steps": self.steps, "seeds": self.seeds}

        shown: dict[str, Any] = {
            "headline": self.headline,
            "settled": self.settled,
            "badge": self.badge,
            "limits": self.limits,
            "findings": self.findings,
            "rule": self.rule,
            "choice": _shown(self.choice),
            "basis": basis,
            "settle": None,
            "figure": None,
            "options": [],
            "differences": list(map(_row, (*self.comparisons, *self.equal_pairs))),
        }

        if self.settling:
            shown["settle"] = asdict(self.settling)
        if self.figure:
            shown["figure"] = _row(self.figure)
        if self.evidence:
            shown["options"] = list(map(_option, self.evidence.arms))

        return shown


def _option(arm: Arm) -> dict[str, Any]:
    facts = {name: getattr(arm, name) for name in ("documents", "pairs", "steps", "name")}
    return {**_shown(arm.condition, held=arm.held), **facts, "ndcg@10": arm.mean, "seeds": arm.n_seeds}


def _shown(option: Condition, **more: str) -> dict[str, Any]:
    # A hybrid is a fusion by its kind.
    fused = option.fused and option.per_doc > 0
    return {"kind": option.kind, "per_doc": option.per_doc, **more, "retriever": option.retriever, "fused": fused}


def _row(c: ArmDifference) -> dict[str, Any]:
    return {
        "option": c.option.name, "against": c.against.name, "held": c.option.held, "points": c.points,
        "low": c.low, "high": c.high, "comparable": c.comparable,
    }  # fmt: skip


def decide(evidence: Sequence[Evidence], task: Task) -> Decision:
    """Return the cheapest option that none is shown to beat, from the best evidence; the newest comes first."""
    own = [e for e in evidence if e.basis.study and _answers(e)]
    if own:
        lead = max(own, key=_design)
        lead = replace(lead, arms=(*lead.arms, *_fixed_elsewhere(lead, own)))
        if not lead.basis.reads_language:
            return _of_language(lead, task)
        return _measured(lead, own, task)

    for e in evidence:
        if not e.basis.reads_language:
            return _of_language(e, task)
    for e in evidence:
        if e.expected:
            return _expected(e)

    limits = tuple(filter(None, [task.unknown]))
    return Decision("Nothing is known about this task yet: test it on your data.", NOTHING, NO_EVIDENCE, limits=limits)


def _answers(e: Evidence) -> bool:
    """Whether it compares a training with something, on two queries or more."""
    arms = e.options
    return len(arms) > 1 and any(map(_trained, arms)) and arms[0].scores.shape[1] > 1


def _design(e: Evidence) -> tuple[Any, ...]:
    """How good a study's design is; the best leads."""
    b = e.basis
    trained = list(filter(_trained, e.options))

    return (
        b.reads_language,
        not b.elsewhere,
        not b.stale,
        (TEMPLATE, MODEL, PEOPLE).index(b.judged_by),
        b.equal_steps,
        b.dev_chosen,
        len(set(map(_per_doc, trained))) > 1,
        min(map(_n_seeds, trained), default=0) > 1,
        b.finished >= b.planned,
        b.judged_queries,
        b.documents,
        max(map(_mean, trained), default=0.0),
    )


def _fixed_elsewhere(lead: Evidence, own: Iterable[Evidence]) -> list[Arm]:
    """Options without training that only other studies measured, on the very queries of the lead."""
    present = {(arm.kind, arm.condition.retriever) for arm in lead.arms}
    found: dict[tuple[str, str], Arm] = {}
    for e in own:
        if not lead.basis.queries or e.basis.queries != lead.basis.queries or e.basis.stale:
            continue
        for arm in e.arms:
            # The hybrid and the untrained scores are those of one retriever, BM25 has none.
            fits = arm.kind == BM25 or (not arm.trained and e.basis.retriever == lead.basis.retriever)
            what = (arm.kind, arm.condition.retriever)
            if fits and what not in present and arm.scores.shape[1] == lead.arms[0].scores.shape[1]:
                found.setdefault(what, arm)
    return list(found.values())


def _comparable(first: Arm, second: Arm) -> bool:
    if not (first.trained and second.trained and first.steps and second.steps):
        return True
    return max(first.steps, second.steps) <= SAME_STEPS * min(first.steps, second.steps)


class OptionSet:
    """The options of one question, the cheapest first, each compared with every other one, both ways, at once."""

    def __init__(self, lead: Evidence, arms: Iterable[Arm], draws: int = DRAWS) -> None:
        self.options = sorted(arms, key=lambda a: (*cost(a), -a.mean))
        people = [arm.people for arm in self.options if arm.people is not None]
        self.corrected = len(people) == len(self.options) and lead.basis.labelled_units >= FEWEST_CLUSTERS
        if not self.corrected:
            people.clear()

        scores = [arm.scores for arm in self.options]
        self.differences = d = simultaneous(scores, clusters=lead.clusters, people=people, draws=draws)

        # The chance (A, A) that the column is more than the margin better than the row.
        means = np.tile(d.estimates.means, (len(self.options), 1))
        self.chances = d.estimates.chances(means, np.arange(len(means)), WORTH_POINTS)

        level = "95%"
        if not self.several_seeds:
            level = "over queries alone"

        self.all = []
        for j, i in permutations(range(len(self.options)), 2):
            option, against = self.options[i], self.options[j]
            points, reach = float(d.points[i, j]), float(d.reach[i, j])
            comparable = _comparable(option, against)
            self.all.append(ArmDifference(option, against, points, points - reach, points + reach, level, comparable))

    @cached_property
    def bounds(self) -> Floats:
        """How far each row may be above each column; without a bound where their steps differ."""
        bounds = self.differences.bounds
        comparable = list(starmap(_comparable, product(self.options, repeat=2)))
        return np.where(np.reshape(comparable, bounds.shape), bounds, math.inf)

    @property
    def trained(self) -> list[Arm]:
        return list(filter(_trained, self.options))

    @property
    def n_seeds(self) -> int:
        """How many seeds every training has."""
        return min(map(_n_seeds, self.trained))

    @property
    def several_seeds(self) -> bool:
        return self.n_seeds > 1

    @property
    def unjudged(self) -> float:
        """The largest share of an option's first tens that is not judged."""
        return max(arm.unjudged for arm in self.options)

    def mean(self, arm: Arm) -> float:
        """Its mean as people's labels correct it."""
        return float(self.differences.estimates.means[self.options.index(arm)])

    def best(self, options: Iterable[Arm]) -> Arm:
        return max(options, key=self.mean)

    def of(self, option: Arm, against: Arm) -> ArmDifference:
        return next(c for c in self.all if c.option is option and c.against is against)

    def find(self, condition: Condition | None) -> Arm | None:
        return next((arm for arm in self.options if arm.condition == condition), None)

    def advisable(self, arm: Arm) -> bool:
        """Return True unless it is shown to be ``WORTH_POINTS`` worse than another, or worse than a cheaper one."""
        for c in self.all:
            if c.against is arm and c.gains and (c.low > WORTH_POINTS or cost(c.option) <= cost(arm)):
                return False

        return True

    @property
    def noisy(self) -> bool:
        """Whether an option leads by so much that only the noise of its lead keeps it from being settled."""
        near = self.bounds.max(axis=0) <= WORTH_POINTS
        return bool(near.any() and not (near & (self.chances.max(axis=1) <= MAX_WRONG)).any())

    def choose(self, options: Sequence[Arm]) -> tuple[Arm, bool]:
        """The cheapest of ``options`` that is shown to lie within ``WORTH_POINTS`` of the best of them, and True; where
        none is shown to, the one of the highest mean and False."""
        among = sorted(map(self.options.index, options))
        for number in among:
            # The bounds take longer, and are asked for where the chances leave an option.
            sure = self.chances[number, among].max() <= MAX_WRONG
            if sure and self.bounds[among, number].max() <= WORTH_POINTS and self.advisable(self.options[number]):
                return self.options[number], True
        return self.best(options), False


def _measured(lead: Evidence, own: Sequence[Evidence], task: Task) -> Decision:
    lead = _labelled(lead)
    b = lead.basis
    q = OptionSet(lead, lead.options)
    choice, within = q.choose(q.options)

    # A retriever for trying things out says little of BM25 while no other one stands beside it.
    retrievers = set(map(attrgetter("condition.retriever"), q.options))
    alone = b.first_look and choice.kind == BM25 and retrievers <= {"", b.retriever}
    unsettled = alone or _open_design(lead, q) is not None
    withheld = q.unjudged > MAX_UNJUDGED

    figure: ArmDifference | None = None
    if withheld:
        text = _withheld(q)
    elif alone:
        figure, text = _first_look(q, choice, b, task)
    else:
        figure, text = _headline(q, choice, b, within, unsettled)

    if b.judged_by == TEMPLATE:
        text = f"on template queries, {text}"

    answer = Decision(
        headline=f"{capital(text)}.",
        choice=choice.condition,
        badge=_badge(b),
        basis=b,
        seeds=q.n_seeds,
        steps=max(map(attrgetter("steps"), q.trained)),
        limits=tuple(_limits(lead, own, q)[:MAX_LIMITS]),
        settled=within and not unsettled and b.judged_by != TEMPLATE and not withheld,
        rule=_rule(lead, q, task),
        figure=figure,
        options=tuple(q.options),
        evidence=lead,
    )

    if alone:
        answer = replace(
            answer, choice=Condition("", RETRIEVER), settling=Settling(BESIDE), readers=tuple(task.readers)
        )
    elif not answer.settled:
        answer = replace(answer, settling=_settling(lead, q))

    # Differences between scores that count unjudged documents as irrelevant would be read as found.
    if withheld:
        return replace(answer, choice=NOTHING)

    pairs = _at_equal_pairs(lead)
    findings = map(capital, _findings(q, choice, figure, pairs, b))
    return replace(answer, findings=tuple(findings), comparisons=tuple(q.all), equal_pairs=pairs)


def _headline(q: OptionSet, choice: Arm, b: Basis, within: bool, unsettled: bool) -> tuple[ArmDifference | None, str]:
    """(the headline's figure, the headline): what to do, and what that is better than or may be worse than."""
    action = action_of(choice.condition, b.retriever, b.unit)
    if not within and (open_to := _not_known(q, choice)) is not None:
        figure, clause = open_to
        return figure, f"so far, {action}{clause}"

    better, clause = _why(q, choice)
    if unsettled or not within:
        action = f"so far, {action}"
    return better, f"{action}{clause}"


def _first_look(q: OptionSet, choice: Arm, b: Basis, task: Task) -> tuple[ArmDifference, str]:
    """(the headline's figure, the headline) where BM25 beats the one retriever for trying things out."""
    figure = q.of(choice, q.best(q.trained))
    text = f"a first look: test a retriever worth having{_readers(task)}. BM25 has {_points(figure, b.retriever)}"
    return figure, text


def _readers(task: Task) -> str:
    """`` (minilm or e5-small)``: retrievers that read the task's language; empty where none is known."""
    if not task.readers:
        return ""
    return f" ({' or '.join(task.readers[:2])})"


def _labelled(lead: Evidence) -> Evidence:
    """The evidence with the labels that every option can be scored on."""
    b = lead.basis
    people = [arm.people.mean(axis=0) for arm in lead.options if arm.people is not None]
    if b.judged_by != MODEL or len(people) < len(lead.options):
        return lead

    known = np.isfinite(np.array(people)).all(axis=0)
    groups = np.array(lead.clusters or range(known.size))[known]
    usable = int(known.sum())
    basis = replace(b, labels=usable, labelled_units=len(set(groups.tolist())), part_labelled=max(0, b.labels - usable))
    return replace(lead, basis=basis)


def _units(lead: Evidence) -> int:
    return count_clusters(lead.clusters, lead.arms[0].scores.shape[1])


def _points(c: ArmDifference, over: str = "") -> str:
    return f"{signed(c.points, 1)} {POINTS} {over and f'over {over} '}{c.interval}"


def _withheld(q: OptionSet) -> str:
    """The headline where too few documents are judged: the leading difference by the two extreme judgments of all."""

    def top(arm: Arm) -> float:
        return arm.mean if arm.top is None else float(arm.top.mean())

    leads = max(q.options, key=_mean)
    rival = max((arm for arm in q.options if arm is not leads), key=top)
    least, most = signed(leads.mean - rival.mean, 1), signed(top(leads) - top(rival), 1)
    over = capital(one_over(leads.condition, rival.condition))
    told = f"withheld: {q.unjudged:.0%} of the first tens are unjudged. {over}"
    return f"{told}: {least} {POINTS} if all are irrelevant, {most} if top-grade"


def _cheaper(q: OptionSet, leads: Arm) -> Arm | None:
    """The cheapest option below the cost of ``leads`` that may do as well; None where there is none."""
    for arm in q.options:
        if cost(arm) >= cost(leads) or not q.advisable(arm):
            continue
        c = q.of(arm, leads)
        if c.high >= -WORTH_POINTS or not c.comparable:
            return arm

    return None


def _not_known(q: OptionSet, leads: Arm) -> tuple[ArmDifference, str] | None:
    """(the figure of a headline that cannot settle, its clause): the cheaper option that may suffice, else the other
    one that may gain over it; None without either."""
    cheaper = _cheaper(q, leads)
    if cheaper is not None:
        c = q.of(leads, cheaper)
        figures = c.verdict
        if c.comparable:
            figures = _points(c, "it")
        return c, f"; cannot tell whether {does(cheaper.condition, 'suffice')}: {figures}"

    others = [q.of(arm, leads) for arm in q.options if arm is not leads]
    brings = max(others, key=lambda c: c.high, default=None)
    if brings is None or brings.high <= 0:
        return None
    return brings, f"; cannot tell whether {does(brings.option.condition, 'gain')}: {_points(brings, 'it')}"


def _why(q: OptionSet, choice: Arm) -> tuple[ArmDifference | None, str]:
    """(the headline's figure, its clause): what the choice is better than."""
    others = [arm for arm in q.trained if arm is not choice]
    if not choice.trained and others:
        over_best = q.of(choice, q.best(others))
        if over_best.gains:
            return over_best, f": {_points(over_best, 'the best training')}"

        # The end of an interval bounds nothing alone: the sentence says a gain, or that none is shown.
        best = max((q.of(arm, choice) for arm in others), key=lambda c: (c.gains, c.points))
        said = "the best training gains only" if best.gains else "no gain by training is shown; the best differs by"
        return best, f": {said} {_points(best)}"

    cheaper = [arm for arm in q.options if cost(arm) < cost(choice)]
    single = [arm for arm in cheaper if arm.per_doc == 1]
    if single:
        over_best = q.of(choice, q.best(single))
        return over_best, f": {_points(over_best, 'the best single query')}"

    candidates = cheaper or others
    if not candidates:
        return None, ""

    over_best = q.of(choice, q.best(candidates))
    return over_best, f": {_points(over_best, name_of(over_best.against.condition))}"


def _findings(
    q: OptionSet, choice: Arm, figure: ArmDifference | None, pairs: Iterable[ArmDifference], b: Basis
) -> Iterator[str]:
    """Sentences. First what every test is asked: several different queries against as many paraphrases, several over
    one, and where a fixed number of queries goes; then the training to take, and other differences to the choice."""
    first = list(_asked(q))
    for c in first:
        yield c.sentence
    for c in pairs:
        yield f"At equal pairs, {c.sentence}"

    if q.corrected:
        text = f"{CORRECTED} {counted(b.labels, 'query', 'queries')} of people"
        if figure is not None:
            text += f"; the judge alone says {signed(figure.option.mean - figure.against.mean, 1)}"
        yield text

    cheaper = _cheaper(q, choice)
    if cheaper is not None and (figure is None or figure.against is not cheaper):
        yield f"Not known: whether {does(cheaper.condition, 'suffice')}, {q.of(cheaper, choice).measured}"

    if choice.kind in (BM25, HYBRID) and q.trained:
        yield f"If you train: {_best_training(q, b)}"

    # Each pair of options once: the headline's and those above are told.
    if figure is not None:
        first.append(figure)
    told = [{id(c.option), id(c.against)} for c in first]
    for option, against in _further(q, choice):
        pair = {id(option), id(against)}
        if option is not against and pair not in told:
            told.append(pair)
            yield q.of(option, against).sentence


def _best_training(q: OptionSet, b: Basis) -> str:
    """The best training where the choice is not to train, with its lead over one query."""
    best, _ = q.choose(q.trained)
    text = action_of(best.condition, b.retriever, b.unit)
    singles = [arm for arm in q.trained if arm.per_doc == 1 and arm is not best]
    if singles:
        over = q.of(best, q.best(singles))
        text += f", {over.measured} over {name_of(over.against.condition)}"

    return text


def _further(q: OptionSet, choice: Arm) -> Iterator[tuple[Arm, Arm]]:
    """Further differences that a reader wants: several over one, the choice over no training, and the trainings on one
    and on the most queries per document over the choice."""
    for arm in q.trained:
        if single := q.find(arm.condition.single):
            yield arm, single

    if choice.trained:
        for arm in q.options:
            if arm.kind == UNTRAINED and arm.condition.retriever in ("", choice.condition.retriever):
                yield choice, arm

    # A training that loses against no training is told as such.
    largest = max(map(_per_doc, q.trained), default=0)
    for arm in reversed(q.trained):
        if arm.per_doc in (1, largest):
            yield arm, choice


def _asked(q: OptionSet) -> Iterator[ArmDifference]:
    """Several different queries over as many paraphrases, for the most of both; and over one, for each number."""
    against: dict[int, list[tuple[Arm, Arm]]] = defaultdict(list)
    over_one: list[tuple[Arm, Arm]] = []
    for arm in q.trained:
        if arm.condition.method != DIVERSE or arm.per_doc < 2:
            continue

        if paraphrases := q.find(arm.condition.paraphrased):
            against[arm.per_doc].append((arm, paraphrases))
        if single := q.find(arm.condition.single):
            over_one.append((arm, single))

    most = max(against, default=0)
    yield from starmap(q.of, (*against[most], *over_one))


def _at_equal_pairs(lead: Evidence) -> tuple[ArmDifference, ...]:
    """The second question: several queries on fewer documents over one on each, for as many pairs."""
    held = [arm for arm in lead.arms if arm.held]
    if not held:
        return ()

    q = OptionSet(lead, [arm for arm in lead.arms if arm.held or arm.per_doc == 1])
    pairs = [(arm, q.find(arm.condition.single)) for arm in held]
    return tuple(q.of(arm, single) for arm, single in pairs if single is not None)


def differences_of(e: Evidence) -> tuple[ArmDifference, ...]:
    """Return every difference that an answer from this evidence states; none where too few documents are judged."""
    if not _answers(e) or max(arm.unjudged for arm in e.options) > MAX_UNJUDGED:
        return ()

    lead = _labelled(e)
    return (*OptionSet(lead, lead.options).all, *_at_equal_pairs(lead))


def _small_sample(b: Basis) -> bool:
    return b.documents < min(FEW_DOCUMENTS, b.of_documents / 2)


def _badge(b: Basis) -> str:
    if b.judged_by == MODEL:
        who, labels = "judged by a model", "no queries"
        if b.queries_by:
            who = f"queries written by {b.queries_by}, judged by {b.judge}"
        if b.labels:
            labels = counted(b.labels, "query", "queries")
        elif b.part_labelled:
            labels = f"{counted(b.part_labelled, 'query', 'queries')} in part"
        return f"{who}, {labels} by people"

    badge = {PEOPLE: "judged by people", TEMPLATE: "template judgments"}[b.judged_by]
    if b.similarities:
        badge += ", two similarities"
    if b.first_look:
        badge += ", first look"
    if b.recorded:
        badge += ", recorded"

    return badge


def _limits(lead: Evidence, own: Sequence[Evidence], q: OptionSet) -> list[str]:
    """What makes the answer weak, the hardest first."""
    b = lead.basis
    steps = [arm.steps for arm in q.trained]
    seen = list(filter(None, map(attrgetter("seen"), q.trained)))
    units, n = _units(lead), lead.arms[0].scores.shape[1]
    unjudged = q.unjudged
    uneven = bool(seen) and b.equal_steps and max(seen) > SAME_STEPS * min(seen)
    template, sampled = TEMPLATE in b.written_by, b.sampled_from > b.judged_queries
    told = [
        (b.recorded, "Recorded on another machine, it came with the demo: run the test here to repeat it."),
        (bool(b.stale), f"The {' and '.join(b.stale)} changed since this was measured: test again."),
        (b.judged_by == TEMPLATE, "Template queries judged this; people's queries may rank the options differently."),
        (0 < unjudged <= MAX_UNJUDGED, f"Up to {unjudged:.0%} of the first ten documents have no judgment."),
        (
            b.unjudged > 0 and not 0 < unjudged <= MAX_UNJUDGED,
            f"{counted(b.unjudged, 'document')} of the first ten have no judgment and count 0.",
        ),
        (
            b.trained_layers > 0,
            f"Only the upper {counted(b.trained_layers, 'layer')} were trained: training all moves scores more, and "
            "can rank the options differently.",
        ),
        (bool(b.elsewhere), f"Measured on other {b.elsewhere} than yours."),
        (b.dev_shared > 0, f"{b.dev_shared:,} of the reported queries also chose the checkpoints."),
        (not b.equal_steps, f"Training steps differ ({min(steps)} to {max(steps)}): more queries also trained longer."),
        (b.similarities, "The untrained retriever was scored by another similarity than the trainings."),
        (b.finished < b.planned, f"{b.finished} of {b.planned} trainings are done."),
        (not q.several_seeds, "One seed: the spread between trainings is unknown."),
        (q.noisy, "So noisy a lead is mostly smaller than it looks."),
        (b.judged_queries < FEW_JUDGED, f"Only {b.judged_queries} judged queries."),
        (units < FEW_JUDGED and units < n, f"{n:,} judged queries share documents, so they count as {units} groups."),
        (_small_sample(b), f"Trained on {b.documents:,} of {b.of_documents:,} {b.unit}s."),
        (b.alike > 0, f"{counted(b.alike, b.unit)} with the same queries by both methods left out."),
        *((True, f"Another study, {e.basis.name}, says the opposite.") for e in _opposed(lead, own)),
        (not b.dev_chosen, "No dev queries chose the checkpoint, so some trainings may be past their best."),
        (bool(b.queries_by), f"{b.queries_by} wrote the judged queries; people may ask differently."),
        (not q.corrected, uncorrected(b)),
        (uneven, f"Equal steps saw {min(seen, default=0):,} to {max(seen, default=0):,} pairs."),
        (template, "Templates wrote the training queries; an LLM's queries may gain more or less."),
        (
            b.in_domain,
            "The documents that answer the judged queries were trained on (in-domain): other tasks may differ.",
        ),
        (sampled, f"Evaluated on {b.judged_queries:,} sampled queries (of {b.sampled_from:,})."),
        (not any(arm.kind == BM25 for arm in q.options), "BM25 was not measured."),
    ]

    return [text for applies, text in told if applies and text]


def uncorrected(b: Basis) -> str:
    """Why people's labels do not correct an answer that they do not correct; empty where no model judged."""
    judge = b.judge or "the model"
    if b.judged_by != MODEL:
        return ""
    if not b.labels + b.part_labelled:
        return f"No person checked the judgments of {judge}."

    if not b.labels:
        queries = counted(b.part_labelled, "labelled query", "labelled queries")
        return f"Of {queries} none has a label for every document that the options found: label the missing ones."

    shared = f", which share documents and count as {b.labelled_units}" if 0 < b.labelled_units < b.labels else ""
    return f"People labelled {b.labels} queries as every option needs{shared}: too few to correct {judge}."


def _direction(e: Evidence, q: OptionSet | None = None) -> int:
    """Whether several different queries beat one (1), lose (-1) or neither is shown (0)."""
    options = q.options if q else e.arms
    arms = [arm for arm in options if arm.trained and arm.kind == DIVERSE and not (arm.held or arm.condition.fused)]
    arms.sort(key=_per_doc)
    if not arms or arms[0].per_doc > 1 or arms[-1].per_doc == 1:
        return 0

    several = [arm for arm in arms if arm.per_doc > 1]
    q = q or OptionSet(e, [arms[0], *several])
    # Of several retrievers' trainings the first one counts.
    c = q.of(max(several, key=_per_doc), arms[0])
    return int(c.gains) - int(c.loses)


def _opposed(lead: Evidence, own: Sequence[Evidence]) -> list[Evidence]:
    """Other studies of the same task that show the opposite of the lead."""
    direction = _direction(lead)
    if not direction:
        return []

    opposed = []
    for e in own:
        same_task = not e.basis.stale and e.basis.elsewhere == lead.basis.elsewhere
        if same_task and e.basis.study != lead.basis.study and _direction(e) == -direction:
            opposed.append(e)

    return opposed


def _rule(lead: Evidence, q: OptionSet, task: Task) -> str:
    """How the published rule relates to the measurement. Only one of the rule's own kind can contradict it."""
    b, says = lead.basis, {"avoid": -1, "recommend": 1}.get(task.rule, 0)
    if not says:
        return ""

    apart = {
        "its trainings saw the documents that answer its queries": b.in_domain == (task.domain == "ood"),
        "its trainings took different numbers of steps": not b.equal_steps,
        "no dev queries chose its checkpoints": not b.dev_chosen,
        "template queries judged it": b.judged_by == TEMPLATE,
        "it is of another task": bool(b.elsewhere),
    }

    for reason, holds in apart.items():
        if holds:
            return f"Your measurement cannot test the published rule: {reason}."

    rule = f"The published rule ({task.rule} different queries)"
    direction = _direction(lead, q)
    if not direction:
        return f"{rule} is neither confirmed nor refuted by this measurement."
    if direction != says:
        return f"{rule} contradicts this measurement, which goes first."

    return "This measurement agrees with the published rule."


def _open_design(lead: Evidence, q: OptionSet) -> Settling | None:
    """What would mend the design of the lead where it leaves any choice open."""
    b = lead.basis
    if b.finished < b.planned:
        return Settling("Finishing the study would settle more.")
    if b.stale or b.elsewhere or b.dev_shared:
        return Settling("A test on your documents and queries as they are now would settle it.")
    if not b.equal_steps:
        return Settling("A test with equal training steps would settle it.")
    if b.similarities:
        return Settling("A test with one similarity for all would settle it.")
    if _small_sample(b):
        return Settling(f"A test on {b.of_documents:,} {b.unit}s would settle more.", documents=b.of_documents)
    if not q.several_seeds:
        return Settling("Three seeds would show the spread between trainings.", seeds=3)
    if _units(lead) < FEWEST_CLUSTERS:
        return Settling("Judged queries about other documents would settle more.")
    if b.judged_by == MODEL and not q.corrected:
        return Settling(f"{LABELS} queries with labels of people would settle more.")
    return None


def _settling(lead: Evidence, q: OptionSet) -> Settling:
    """The one thing that would settle the answer."""
    b = lead.basis
    if q.unjudged > MAX_UNJUDGED:
        return Settling("Judging these documents would settle more.")
    if b.judged_by == TEMPLATE and b.finished >= b.planned:
        return Settling(
            f"{FEW_JUDGED} or more queries judged by people or a model would settle it.", queries=FEW_JUDGED
        )
    if (mended := _open_design(lead, q)) is not None:
        return mended

    found = needed(q.differences.estimates, WORTH_POINTS)
    if found is None:
        return Settling(f"It cannot be settled here: {STEPS[-1]:g} times the data would not do.")

    what, factor = found
    if what == "seeds":
        more = math.ceil(q.n_seeds * factor)
        return Settling(f"About {more} seeds (now {q.n_seeds}) would settle it in 80% of tests.", seeds=more)

    if q.corrected:
        more = _rounded(b.labels * factor)
        return Settling(f"About {more:,} labelled queries (now {b.labels:,}) would settle it in 80% of tests.")

    now = b.judged_queries
    more = _rounded(now * factor)
    return Settling(f"About {more:,} judged queries (now {now:,}) would settle it in 80% of tests.", queries=more)


def _rounded(n: float) -> int:
    """Round up to two digits: it is an estimate."""
    unit = 10 ** max(0, int(math.log10(n)) - 1)
    return math.ceil(n / unit) * unit


def _of_language(lead: Evidence, task: Task) -> Decision:
    """The retriever does not read the language: what it gains from queries says nothing."""
    b = lead.basis
    text = f"Choose a retriever for {language_of(task.language).name}{_readers(task)}: {b.retriever}"
    answer = Decision(
        headline=f"{text} does not read it.",
        choice=Condition("", RETRIEVER),
        badge=NO_EVIDENCE,
        readers=tuple(task.readers),
        evidence=lead,
    )
    if not lead.arms:
        return answer

    answer = replace(answer, badge=_badge(b), basis=b)
    trained = list(filter(_trained, lead.options))
    if not trained:
        return answer

    answer = replace(answer, seeds=min(map(_n_seeds, trained)), steps=max(map(attrgetter("steps"), trained)))
    lexical = [arm for arm in lead.options if arm.kind == BM25]
    if not lexical:
        return answer

    q = OptionSet(lead, lead.options)
    answer = replace(answer, options=tuple(q.options))
    figure = q.of(lexical[0], max(trained, key=_mean))
    if not figure.gains:
        return answer

    below = f"{figure.points:.1f} {POINTS} below BM25 (95% {figure.low:.1f} to {figure.high:.1f})"
    return replace(answer, headline=f"{text}, which does not read it, is {below}.", figure=figure)


def _expected(prior: Evidence) -> Decision:
    """What other datasets predict; never settled for a task of its own."""
    shown = [e for e in prior.expected if e.low > 0]
    if shown:
        e = min(shown, key=lambda e: e.per_doc)
        choice = Condition("", DIVERSE, e.per_doc)
    else:
        e = max(prior.expected, key=lambda e: e.points)
        choice = Condition("", DIVERSE, 1)

    several = Condition("", DIVERSE, e.per_doc)
    expects = f"other datasets leave open whether {does(several, 'gain')}:"
    if shown:
        expects = f"judging by other datasets, {does(several, 'bring')}"
    action = action_of(choice, "", prior.basis.unit)
    figure = f"{signed(e.points, 1)} {POINTS} (95% {signed(e.low, 1)} to {signed(e.high, 1)})"

    return Decision(
        headline=f"So far, {action}; {expects} {figure}.",
        choice=choice,
        badge=ELSEWHERE,
        basis=prior.basis,
        limits=("None of it is from your data.", *prior.limits)[:MAX_LIMITS],
        settling=Settling("A test on your data would settle it."),
        evidence=prior,
    )
