"""The claims and their criteria, from ``data/plans/claims.yaml``: data, so that code judges and not a reader.

A criterion is one figure (a mean, or a slope on content words) of one comparison (arms minus their control), judged by
one direction and one margin. What was run keeps the digest of each criterion as it was when the run began.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from cdp.base.condition import Condition
from cdp.base.errors import ConfigError, InputError
from cdp.base.workspace import sha256_text
from cdp.studies.config import CLAIMS, PLANS, read_plan

FILE = PLANS / f"{CLAIMS}.yaml"

MEAN, SLOPE = "mean", "slope"
SETS, QUERIES = "sets", "queries"
OUT, IN = "out", "in"
GAIN, LOSS, DIFFERENCE, NO_DIFFERENCE, NO_GAIN = "gain", "loss", "difference", "no difference", "no gain"

# Facts of an arm beside the fields of ``Condition``.
METHOD, CORPUS = "method", "corpus"

# Where an arm does not name them all of their values take part; of every other field only the default does.
FREE = ("retriever", METHOD, CORPUS, "per_doc")

# The parts of the document's first page.
QUESTIONS = ("which queries", "how many", "which loss", "when not to train")

# Keys of a claim that are none of its criterion: they may change after a run.
BESIDE = ("sentence", "untestable", "settles", "question", "then", "published", "controls", "also", "id")

# Values of a criterion that say nothing: they are not in its digest, so that a setting that is new changes none.
UNSAID: tuple[Any, ...] = ("", None, (), {}, "out", "mean", "sets")

_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Criterion:
    """``of`` selects conditions by their facts; in ``against``, their control, some are replaced. With ``interaction``
    the same difference with these facts replaced on both sides is taken off.

    ``margin`` is in points of NDCG@10, of a slope in points per content word. ``cw`` is a range (from, below) of the
    judged sets' mean CW. ``beside`` names covariates that are held fixed. ``name`` tells it from the others of a claim.
    """

    __pydantic_config__ = _STRICT

    studies: tuple[str, ...]
    of: dict[str, Any]
    against: dict[str, Any]
    direction: Literal["gain", "loss", "difference", "no difference", "no gain"]
    margin: float
    name: str = ""
    interaction: dict[str, Any] = field(default_factory=dict)
    domain: Literal["out", "in", "any"] = "out"
    cw: tuple[float, float] | None = None
    languages: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()
    figure: Literal["mean", "slope"] = "mean"
    over: Literal["sets", "queries"] = "sets"
    beside: tuple[Literal["words", "overlap"], ...] = ()

    @property
    def unit(self) -> str:
        return "points per content word" if self.figure == SLOPE else "points"


@dataclass(frozen=True)
class Published:
    """The rows of ``data/published/results.csv`` that a claim is about, selected and paired as arms are."""

    __pydantic_config__ = _STRICT

    tables: tuple[str, ...]
    of: dict[str, Any]
    against: dict[str, Any]
    figure: Literal["mean", "slope", ""] = ""


@dataclass(frozen=True)
class Claim:
    """A claim with its ``criteria``, all of which it must meet. ``controls`` are figures shown beside its own.

    ``untestable`` says why it cannot be tested; ``then`` has a sentence for each verdict, an answer to ``question``.
    """

    __pydantic_config__ = _STRICT

    id: str
    sentence: str
    criteria: tuple[Criterion, ...] = ()
    controls: tuple[Criterion, ...] = ()
    published: Published | None = None
    untestable: str = ""
    settles: str = ""
    question: Literal["which queries", "how many", "which loss", "when not to train", ""] = ""
    then: dict[Literal["supported", "contradicted", "equivalent", "cannot tell"], str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """12 hex digits of the criteria: what a run keeps, to show that they are older than it."""
        said = [{n: v for n, v in asdict(c).items() if v not in UNSAID} for c in self.criteria]
        return sha256_text(json.dumps(said, sort_keys=True))[:12]

    @property
    def studies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(study for c in self.criteria for study in c.studies))


def wanted(value: Any) -> tuple[Any, ...]:
    """One value or a list of them, as a tuple."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def read(file: Path = FILE) -> list[Claim]:
    """The claims in their order. InputError for a file that is no such list, naming the claim and the field."""
    try:
        entries = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"cannot be read: {error}.", file=file) from error
    if not isinstance(entries, list) or not all(isinstance(entry, dict) and "id" in entry for entry in entries):
        raise InputError("is no list of claims, each with an 'id'.", file=file)
    claims = [_claim(entry, file) for entry in entries]
    if len({claim.id for claim in claims}) < len(claims):
        raise InputError("Two claims have the same id.", file=file)
    return claims


def _claim(entry: Mapping[str, Any], file: Path) -> Claim:
    base = {name: value for name, value in entry.items() if name not in BESIDE}
    about = {name: entry[name] for name in BESIDE if name in entry and name not in ("also", "controls")}
    try:
        also, controls = ([_changed(base, change) for change in entry.get(name) or ()] for name in ("also", "controls"))
        criteria = [base, *also] if base else []
        found = TypeAdapter(Claim).validate_python({**about, "criteria": criteria, "controls": controls})
    except (ValidationError, TypeError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"Claim {entry['id']}: {where}: {first['msg']}.", file=file) from error
    if not found.criteria and not found.untestable:
        raise InputError(f"Claim {found.id} has neither a criterion nor the reason why it is untestable.", file=file)
    return found


def _changed(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A criterion with some of it replaced; of arms, single facts."""
    arms = {name: {**base.get(name, {}), **change[name]} for name in ("of", "against") if name in change}
    return {**base, **change, **arms}


def check(claims: Sequence[Claim]) -> list[str]:
    """What no plan can give: studies without a plan, and facts of arms that no condition of theirs has."""
    known = {f for f in (*Condition._fields, METHOD, CORPUS) if f != "source"}
    problems = []
    for claim in claims:
        for criterion in (*claim.criteria, *claim.controls):
            say = partial("{}{}: {}".format, claim.id, f" ({criterion.name})" if criterion.name else "")
            offered: dict[str, set[str]] = {}
            for study in criterion.studies:
                try:
                    plan = read_plan(study)
                except (InputError, ConfigError) as error:
                    problems.append(say(str(error)))
                    continue

                for name, entries in (
                    ("per_doc", map(str, plan.per_doc)),
                    ("retriever", plan.retrievers),
                    ("weighting", plan.weightings),
                    ("loss", plan.losses),
                    ("query_source", plan.query_sources),
                    (METHOD, [*plan.methods, "untrained", *(["human"] if plan.query_sets else [])]),
                ):
                    offered.setdefault(name, set()).update(entries)

                layers = {number or None for number in plan.layers}
                if len(layers) > 1 and "layers" not in criterion.of:
                    problems.append(say(f"{study} compares numbers of trained layers, and no arm names one."))

            for arm in (criterion.of, criterion.against, criterion.interaction):
                problems += [say(f"an arm has no {name!r}.") for name in arm if name not in known]
                for name, there in offered.items():
                    lacking = [v for v in wanted(arm.get(name, ())) if str(v) not in there]
                    # Sets whose queries are neither people's nor a method's go by their own names.
                    if lacking and not (name == METHOD and "human" in there):
                        problems.append(say(f"{name} {lacking[0]!r} is in none of {', '.join(criterion.studies)}."))

    return problems


def blob(file: Path) -> str:
    """The id that git gives the file's content: by it, the commits that held the file so are found."""
    data = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def frozen(plan: str, claims: Sequence[Claim]) -> dict[str, Any]:
    """What a run of ``plan`` keeps of it when it begins: both files' ids, and the digest of each claim's criteria."""
    digests = {claim.id: claim.digest for claim in claims if plan in claim.studies}
    return {"plan": blob(PLANS / f"{plan}.yaml"), "claims": blob(FILE), "criteria": digests}
