"""Settings: every problem is named at once, earlier specs read back unchanged, choices are asked for at use."""

from __future__ import annotations

import json

import pytest

from cdp.base.config import EvaluationConfig, SynthesisConfig, TrainingConfig
from cdp.base.errors import ConfigError
from cdp.base.settings import Config, option
from tests.fuzz.small_files import CONFIGS

# The `config` of a training's `spec.json`, as the first version wrote it.
WRITTEN_BEFORE = (
    '{"query_set": "q", "retriever": "minilm", "weighting": "cw", "per_doc": 5, "max_documents": null, "epochs": 3, '
    '"batch_size": 32, "learning_rate": 2e-05, "seed": 7, "name": "", "benchmark": "", "split": "", "eval_steps": 500, '
    '"patience": null, "save_steps": 500, "scale": 20.0, "max_length": null, "weight_decay": 0.01, "clip_norm": 1.0, '
    '"kappa": 100.0, "reasoning": "", "query_source": "query-only", "ri_kappa": 5.0, '
    '"weights": "", "hard_negatives": null, "lora_rank": null, "mini_batch": null, "precision": "auto", '
    '"gradient_checkpointing": null, "gpus": null}'
)


def test_a_job_of_an_earlier_version_is_read_and_written_as_it_was() -> None:
    before = json.loads(WRITTEN_BEFORE)
    now = TrainingConfig.from_dict(before).to_dict()
    assert json.dumps({name: now[name] for name in before}) == WRITTEN_BEFORE


def test_the_constructor_checks_as_from_dict_does() -> None:
    values = {"retriever": "minilm", "benchmark": "b", "top_k": 5, "protocl": "paper", "precision": "fp61"}
    raised = []
    for make in (EvaluationConfig.from_dict, lambda given: EvaluationConfig(**given)):
        with pytest.raises(ConfigError) as error:
            make(values)
        raised.append(str(error.value))
    assert raised[0] == raised[1] == (
        "'top_k' must be at least 10 documents, not 5; 'precision' must be one of auto, fp32, fp16, bf16, not 'fp61' "
        "(did you mean fp16?); 'protocl' is not a setting (did you mean protocol?)."
    )  # fmt: skip


def test_a_changed_configuration_is_checked_and_the_first_one_stays() -> None:
    config = SynthesisConfig(corpus="c", generator="openai", logprobs=True)
    assert config.replace(per_doc=3).per_doc == 3
    assert config.per_doc == 5
    with pytest.raises(ConfigError, match="'logprobs' needs an endpoint"):
        config.replace(generator="template")
    with pytest.raises(ConfigError, match="'per_doc' must be at most 20 queries, not 21"):
        config.replace(per_doc=21)


NAMES = ["first"]


class Example(Config):
    """Settings whose choices are read from what may grow."""

    kind: str = option("first", "Which one.", choices=NAMES)


def test_choices_are_those_that_there_are_when_they_are_asked_for() -> None:
    with pytest.raises(ConfigError, match="must be one of first, not 'added'"):
        Example(kind="added")
    NAMES.append("added")
    assert Example(kind="added").kind == "added"


@pytest.mark.parametrize("kind", CONFIGS, ids=lambda kind: kind.__name__)
def test_every_default_has_its_reason(kind: type[Config]) -> None:
    """An empty one may say in its help what then holds; a value needs a reason of its own."""
    unexplained = [
        name
        for name, setting in kind.settings().items()
        if not (setting.required or setting.default in ("", None) or setting.reason)
    ]
    assert unexplained == []
