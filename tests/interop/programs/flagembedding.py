"""One step of FlagEmbedding's trainer on its export: with and without a teacher's scores, and without negatives."""

import json
import math
import sys
from importlib.metadata import version
from pathlib import Path

from FlagEmbedding.abc.finetune.embedder import AbsEmbedderDataArguments as DataArguments
from FlagEmbedding.abc.finetune.embedder import AbsEmbedderModelArguments as ModelArguments
from FlagEmbedding.abc.finetune.embedder import AbsEmbedderTrainingArguments as TrainingArguments
from FlagEmbedding.finetune.embedder.encoder_only.base import EncoderOnlyEmbedderRunner

given = Path(sys.argv[1])
rows = json.loads((given / "ours.json").read_text())["rows"]
print("FlagEmbedding", version("FlagEmbedding"), "transformers", version("transformers"))


def step(name: str, group: int, distil: bool) -> tuple[int, float]:
    settings = TrainingArguments(
        str(given / "out" / f"flag-{name}-{group}-{distil}"), max_steps=1, per_device_train_batch_size=rows[name],
        report_to="none", use_cpu=True, save_strategy="no", sentence_pooling_method="mean", disable_tqdm=True,
        remove_unused_columns=False,
    )  # fmt: skip
    data = DataArguments(
        [str(given / f"{name}.jsonl")], cache_path=str(given / "cache"), train_group_size=group,
        knowledge_distillation=distil,
    )  # fmt: skip
    runner = EncoderOnlyEmbedderRunner(ModelArguments(str(given / "models" / "mean")), data, settings)
    return len(runner.train_dataset), runner.trainer.train().training_loss


for name, group, distil in (("flagembedding", 4, False), ("flagembedding", 4, True), ("flagembedding-alone", 1, False)):
    examples, loss = step(name, group, distil)
    print(f"{name}, train_group_size {group}, knowledge_distillation {distil}: {examples} examples, loss {loss:.4f}")
    assert examples == rows[name]
    assert math.isfinite(loss)
try:
    step("flagembedding-alone", 2, False)
    raise AssertionError("a set without negatives was trained on with train_group_size 2")
except ZeroDivisionError as error:
    print(f"flagembedding-alone, train_group_size 2: ZeroDivisionError, {error}")
