"""PyLate on a model from here as its base: one step of Contrastive and of Distillation on our exports."""

import json
import math
import sys
from importlib.metadata import version
from pathlib import Path

import torch
from datasets import Dataset
from pylate import losses, models, utils
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments

given = Path(sys.argv[1])
rows = json.loads((given / "ours.json").read_text())["rows"]
print("PyLate", version("pylate"), "sentence-transformers", version("sentence-transformers"))
for name in ("mean", "minilm"):
    base = str(given / "models" / name)
    model = models.ColBERT(base, document_length=64, device="cpu")
    ours = SentenceTransformer(base, device="cpu")[0].auto_model.state_dict()
    theirs = model[0].auto_model.state_dict()
    assert all(torch.equal(theirs[key][: len(weights)], weights) for key, weights in ours.items())
    shape = model.encode(["hello world"], is_query=False)[0].shape
    print(f"{name}: all {len(ours)} weights are the base's, token vectors of shape", shape)

base = str(given / "models" / "mean")
for name, loss in (("n-tuples", losses.Contrastive), ("pylate", losses.Distillation)):
    data = Dataset.from_parquet(str(given / f"{name}.parquet"), cache_dir=str(given / "cache"))
    model = models.ColBERT(base, document_length=64, device="cpu")
    settings = SentenceTransformerTrainingArguments(
        str(given / "out"), max_steps=1, per_device_train_batch_size=len(data), report_to="none", use_cpu=True,
        save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    collator = utils.ColBERTCollator(model.tokenize)
    trainer = SentenceTransformerTrainer(model, settings, train_dataset=data, loss=loss(model), data_collator=collator)
    trained = trainer.train()
    print(f"{name}: {loss.__name__}, {len(data)} rows of {data.column_names}, loss {trained.training_loss:.4f}")
    assert len(data) == rows[name]
    assert math.isfinite(trained.training_loss)
