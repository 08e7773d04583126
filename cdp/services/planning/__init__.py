"""The scale planner: time, money, memory, storage and network of every stage, for any number of documents.

The arithmetic is ``cdp.planning``'s. Here it is said what is known: the corpus, the price table, the retriever, and the
rates, of which those that a user told come first, then finished jobs', then what a machine measured, then published.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

from cdp.base.config import SynthesisConfig
from cdp.base.errors import ConfigError, ModelError, NotFoundError
from cdp.base.records import Document
from cdp.base.workspace import Workspace, is_name
from cdp.corpus import resolve_corpus
from cdp.jobs.launchers import SPINS, python_path
from cdp.planning.config import PlanConfig
from cdp.planning.known import PUBLISHED
from cdp.planning.quantities import read_count
from cdp.planning.rates import Rate, read_user_rates
from cdp.planning.scale import ScalePlan, scale_plan
from cdp.planning.stages import CHARACTERS_PER_TOKEN, UNITS
from cdp.planning.workload import Hardware, Model, Workload, Writer
from cdp.retrievers import PRESETS
from cdp.retrievers.preset import GENERAL_DEFAULTS
from cdp.retrievers.trained import training_result
from cdp.services import commands, corpora
from cdp.services.planning import history, machine
from cdp.services.planning.machine import Machine
from cdp.services.sharing import access
from cdp.synthesis import pricing
from cdp.synthesis.generators import GENERATORS
from cdp.synthesis.generators.spread import processes_for, processors
from cdp.synthesis.methods import get_method

EIGHT_THOUSAND = 8000
LONGEST_MEASUREMENT_S = 600.0


@access.reads
def list_generators(workspace: Workspace) -> list[str]:
    """Generators that a plan knows by name: those without a model, and the models whose price is known."""
    return ["template", "recorded", *(f"openai:{row.model}" for row in pricing.read_prices(workspace).rows)]


@access.reads
def plan(workspace: Workspace, config: PlanConfig) -> ScalePlan:
    """What the run would take. Nothing is started, and nothing is looked up outside this machine."""
    hardware = Hardware(
        config.machines, config.cpus or processors(), config.gpus, config.memory_gb, config.dollars_per_hour
    )
    return scale_plan(_workload(workspace, config, hardware), hardware, rates(workspace, config))


def rates(workspace: Workspace, config: PlanConfig) -> dict[str, Rate]:
    """Every rate that is known, by key, each from the best of its sources."""
    user_rates = read_user_rates([part.strip() for part in config.rates.split(",") if part.strip()], UNITS)
    if config.measured_on:
        elsewhere = machine.rates_of(machine.load(workspace, config.measured_on), here=False)
        return {**PUBLISHED, **elsewhere, **user_rates}
    own = machine.this_machine()
    here = own in machine.list_machines(workspace)
    measured = machine.rates_of(machine.load(workspace, own), here=True) if here else {}
    return {**PUBLISHED, **measured, **history.rates(workspace), **user_rates}


@access.runs
def measure(workspace: Workspace, retriever: str = "") -> Machine:
    """Measure this machine by small real work in a temporary folder, and keep what was found in the workspace.

    A process of its own does it, since it loads models. ModelError where that failed.
    """
    environment = {"GOMP_SPINCOUNT": SPINS, **os.environ, "PYTHONPATH": python_path(os.environ)}
    name = access.model(workspace, retriever) if retriever else ""
    worker = [sys.executable, "-m", "cdp.workers.rates", json.dumps({"retriever": name, "began": time.time()})]
    try:
        done = subprocess.run(worker, env=environment, capture_output=True, text=True, timeout=LONGEST_MEASUREMENT_S)
    except subprocess.TimeoutExpired:
        raise ModelError(
            f"Measuring took longer than {LONGEST_MEASUREMENT_S / 60:.0f} minutes.", hint="Is the machine busy?"
        ) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise ModelError(lines[-1][:300] if lines else f"The measurement ended with exit code {done.returncode}.")
    return machine.keep(workspace, json.loads(done.stdout.splitlines()[-1]))


def list_machines(workspace: Workspace) -> list[str]:
    """The machines that have measured into this workspace."""
    return machine.list_machines(workspace)


def command(config: PlanConfig) -> str:
    """``plan`` as it shows the same."""
    given = {
        name: getattr(config, name)
        for name, setting in config.settings().items()
        if getattr(config, name) not in ("", None, setting.default)
    }
    return commands.line("plan", **given)


def _workload(workspace: Workspace, config: PlanConfig, hardware: Hardware) -> Workload:
    documents, characters = 0, float(config.characters)
    if config.corpus:
        manifest = resolve_corpus(workspace, config.corpus)
        documents = manifest.n_documents
        characters = max(1.0, corpora.mean_characters(workspace, manifest))
    if config.documents:
        documents = read_count(config.documents)
    documents = documents or EIGHT_THOUSAND
    method = get_method(config.method)
    return Workload(
        documents,
        characters,
        config.per_doc,
        method.tokens_per_query * CHARACTERS_PER_TOKEN,
        config.queries,
        _model(workspace, config),
        _writer(workspace, config, documents, characters, hardware.cpus),
    )


def _writer(workspace: Workspace, config: PlanConfig, documents: int, characters: float, cpus: int) -> Writer:
    """What writes the queries, with its tokens and price for the whole corpus."""
    kind, _, model = config.generator.partition(":")
    if kind not in GENERATORS:
        raise NotFoundError("generator", kind, known=list(GENERATORS))
    generator, method = GENERATORS[kind], get_method(config.method)
    if method.generator:
        raise ConfigError(
            f"{method.title} has a generator of its own, which is not planned.", hint="Name another method."
        )
    if not generator.is_llm:
        if model:
            raise ConfigError(f"The generator {kind} has no models.", hint=f"Write --generator {kind}.")
        return Writer(kind, "processor", processes_for(documents, cpus) if kind == "template" else 1)
    name = model or generator.model
    limit = SynthesisConfig.settings()["max_document_tokens"].default
    text = ("paragraph " * (int(min(characters, 8.0 * limit)) // 10 + 1))[: round(min(characters, 8.0 * limit))]
    queries = ["what a query of usual length looks like"] * config.per_doc if method.from_queries else ()
    limit = min(limit, method.max_document_tokens or limit)
    each = pricing.prompt_tokens(method, Document("typical", text), limit, config.per_doc, queries)
    usage = pricing.expected_usage(method, each, documents, documents * config.per_doc)
    writer = Writer(name, "endpoint" if generator.endpoint else "device", 1, usage.requests, usage.input_tokens,
                    usage.output_tokens)  # fmt: skip
    if generator.local:
        return writer
    price = pricing.load_price(name, pricing.price_file(workspace))
    if price is None:
        return replace(writer, dollars=None, price=f"unknown: the price table has no {name}")
    batch = price.cost(usage) * (1 - price.batch_discount)
    shown = f"${price.input:g} and ${price.output:g} per million tokens as of {price.as_of}"
    shown += f"; {pricing.dollars(batch)} as a batch" if price.batch_discount else ""
    return replace(writer, dollars=price.cost(usage), price=f"{shown} (published: the provider's list, or your own)")


def _model(workspace: Workspace, config: PlanConfig) -> Model:
    """A retriever's facts: a preset's, of what a training began as, or of a hub's model only its name."""
    name = config.retriever
    if name not in PRESETS and is_name(name) and (workspace.jobs / name).is_dir():
        trained = training_result(workspace.jobs / name)
        name = str(trained["retriever"]) if trained else name
    preset = PRESETS.get(name)
    if preset is None and "/" not in name:
        raise NotFoundError("retriever", name, known=list(PRESETS))
    defaults = preset.defaults if preset else GENERAL_DEFAULTS
    return Model(
        name,
        preset.dimensions if preset else 0,
        preset.n_parameters if preset else 0,
        config.epochs or int(defaults["epochs"].value),
        int(defaults["batch_size"].value),
    )
