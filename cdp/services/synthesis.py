"""The generator of a project's queries, its prices and bills; batches and exports."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdp import query_sets
from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError
from cdp.base.file_cache import ANSWERS
from cdp.base.records import JOB_FACTS, Count, Document, Real, fields, whole
from cdp.base.text import counted
from cdp.base.workspace import Workspace
from cdp.corpus import resolve_corpus
from cdp.llm import address
from cdp.llm.answers import Usage
from cdp.llm.prices import dollars as dollars
from cdp.llm.prices import load_price
from cdp.query_sets import QuerySet, exports
from cdp.query_sets.exports import EXPORTS, Export
from cdp.services import access, completeness
from cdp.synthesis import batch
from cdp.synthesis import estimate as estimates
from cdp.synthesis.batch import BatchResult
from cdp.synthesis.estimate import Estimate
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.methods import METHODS, OWN
from cdp.synthesis.sentences import is_english

# Problems of `parsing.Parsed` and `generate` whose names do not say enough.
_WORDS = {
    "too_few": "fewer queries than asked for",
    "over_long": "too long to be a query",
    "stray_line": "lines beside the list",
    "cut_off": "cut off, what it ends with left out (max_output_tokens)",
    "prompt_cut": "prompts that the endpoint counted at far fewer tokens than were sent: it may cut them",
    "repaired": "second attempts",
    "repair_failed": "second attempts that were no better",
}

TEMPLATE_KINDS = ("diverse", "diverse_paper", "paraphrase", "paraphrase_paper")
JOINED = (
    "The template generator joins a diverse query of each document by rule: a stand-in for one that needs them all."
)
IGNORES_PROMPT = "The template generator reads no prompt: these are its diverse queries, whatever the method asks for."
NOT_ENGLISH = "Not read as English: these are words and sentences of the document itself, put in another order."
NO_WORDS = "The document holds no words to build a query from."
UNREADABLE = "No query could be read from the answer."


def problems(found: Mapping[str, int], *, queries: int, template: str, document: Document) -> list[str]:
    """Return sentences on the problems of one method's answer for ``document``.

    ``template`` is the method that the template generator was asked for, empty for every other generator.
    """
    counts = {kind: n for kind, n in found.items() if queries or kind != "too_few"}
    sentences = [f"{_WORDS.get(kind, kind.replace('_', ' '))}: {n}" for kind, n in counts.items()]
    if not queries:
        return [NO_WORDS if template else UNREADABLE, *sentences]
    if not template:
        return sentences
    limits = [] if template in TEMPLATE_KINDS else [JOINED if METHODS[template].joint else IGNORES_PROMPT]
    return [*sentences, *limits, *([] if is_english(document.content) else [NOT_ENGLISH])]


@dataclass(frozen=True)
class Bill:
    """What writing a query set has cost so far, in US dollars, and what was expected; None without a price."""

    expected: float | None
    cost: float | None
    usage: Usage
    price_as_of: str = ""

    @property
    def told(self) -> str:
        """The cost in a sentence."""
        day = f", by prices as of {self.price_as_of}" if self.price_as_of else ""
        return (
            f"Cost: {dollars(self.cost)} for {self.usage.input_tokens:,} input and {self.usage.output_tokens:,} output "
            f"tokens{day}. Expected: {dollars(self.expected)}."
        )

    @property
    def unanswered(self) -> str:
        """A sentence on requests that may have been charged for without an answer; empty for none."""
        n = self.usage.unanswered
        if not n:
            return ""
        return (
            f"{counted(n, 'request')} got no answer (connection lost, time-out, stopped or killed). The endpoint may "
            "charge for them: the cost counts them at their expected price."
        )


@dataclass(frozen=True)
class Exported:
    """The ``n`` queries (or requests) that were written, and where; ``note`` says what an incomplete set lacks."""

    n: int
    paths: tuple[Path, ...]
    note: str = ""


@access.reads
def resolved(workspace: Workspace, config: SynthesisConfig) -> SynthesisConfig:
    """Return ``config`` with the ids of its corpus and source."""
    manifest = resolve_corpus(workspace, config.corpus)
    source = query_sets.resolve_query_set(workspace, config.source).id if config.source else ""
    return SynthesisConfig.from_dict({**config.to_dict(), "corpus": manifest.id, "source": source})


@access.reads
def estimate(workspace: Workspace, config: SynthesisConfig) -> Estimate:
    """Return the expected tokens and price, kept until the price changes (a page asks at every click).

    ConfigError for a malformed address of an endpoint, as from the job itself.
    """
    if GENERATORS[config.endpoint.generator].endpoint:
        address.address(config.endpoint.base_url)
    config = resolved(workspace, config)
    question = ("estimate", config, load_price(config.endpoint.model_name, workspace))
    return ANSWERS.get(workspace.corpora / config.corpus, question, lambda: estimates.estimate(workspace, config))


_SPENT = fields(spent=dict[str, Count], cost=Real | None, price_as_of=str | None)


def bill_of_job(workspace: Workspace, job: str) -> Bill | None:
    """Return the cost so far of a job that writes queries; None before its first attempt ends, and without an LLM."""
    spec = whole(JOB_FACTS, workspace.job(job) / "spec.json") or {}
    if spec.get("kind") != "synthesis":
        return None
    result = whole(_SPENT, workspace.job(job) / "results" / "synthesis.json")
    generator = GENERATORS.get(spec.get("config", {}).get("generator", ""))
    if result is None or generator is None or not generator.endpoint:
        return None
    expected = spec.get("inputs", {}).get("estimate") or {}
    usage = Usage(**{name: n for name, n in result.get("spent", {}).items() if name in Usage.__dataclass_fields__})
    return Bill(expected.get("cost"), result.get("cost"), usage, result.get("price_as_of") or "")


@access.writes
def batch_write(workspace: Workspace, config: SynthesisConfig, folder: str | Path) -> Exported:
    """Write the requests of a job without a cached answer as OpenAI Batch JSONL."""
    return _written(batch.write_batch(workspace, resolved(workspace, config), access.to_write(folder), "batch"))


@access.writes
def batch_read(workspace: Workspace, path: str | Path) -> BatchResult:
    """Cache the answers of a batch's output file; the same job, started as usual, then finds them."""
    return batch.read_batch(workspace, access.to_read(workspace, path))


def export_formats(query_set: QuerySet) -> dict[str, Export]:
    """Return the formats that this set can be written in: requests only for a set with a prompt."""
    return {name: kind for name, kind in EXPORTS.items() if kind.write is not None or not query_set.imported}


@access.writes
def export(
    workspace: Workspace, query_set: str, form: str, target: str | Path, *, per_doc: int | None = None, model: str = ""
) -> Exported:
    """Write a query set to ``target`` in a registered format: its queries, or the requests behind it."""
    return _export(workspace, query_set, form, access.to_write(target), per_doc, model)


@access.reads
def download(workspace: Workspace, query_set: str, form: str) -> bytes:
    """Return the file that ``export`` writes, or a zip of its folder."""
    with tempfile.TemporaryDirectory(prefix="cdp-") as folder:
        path = Path(folder) / "export"
        _export(workspace, query_set, form, path)
        if path.is_dir():
            path = Path(shutil.make_archive(str(path), "zip", path))
        return path.read_bytes()


def _export(
    workspace: Workspace, query_set: str, form: str, path: Path, per_doc: int | None = None, model: str = ""
) -> Exported:
    resolved_set = query_sets.resolve_query_set(workspace, query_set)
    if EXPORTS.named(form).write is not None:
        note = "" if resolved_set.complete else completeness.check(workspace, resolved_set).sentence
        return Exported(exports.export(workspace, resolved_set.id, form, path, per_doc=per_doc), (path,), note)
    if resolved_set.method not in (*METHODS, OWN):
        raise ConfigError(
            f"{resolved_set.name} was imported: there is no prompt behind it.", hint="Choose another format."
        )
    settings = SynthesisConfig.settings()
    own = {name: value for name, value in resolved_set.parameters.items() if name in settings and value is not None}
    values = {
        **own,
        "corpus": resolved_set.corpus_id,
        "method": resolved_set.method,
        "per_doc": per_doc or resolved_set.per_doc,
        "generator": "openai",
        "model": model or (resolved_set.model if resolved_set.generator == "openai" else ""),
    }
    return _written(batch.write_batch(workspace, SynthesisConfig.from_dict(values), path, "batch", whole=True))


def _written(files: list[Path]) -> Exported:
    return Exported(sum(path.read_bytes().count(b"\n") for path in files), tuple(files))
