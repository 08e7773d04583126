"""One step of sentence-transformers' trainer on each of its exports, with the losses that read them."""

import json
import math
import sys
from pathlib import Path

import sentence_transformers
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.losses import DistillKLDivLoss, MarginMSELoss, MultipleNegativesRankingLoss, TripletLoss

given = Path(sys.argv[1])
rows = json.loads((given / "ours.json").read_text())["rows"]
print("sentence-transformers", sentence_transformers.__version__)
for name, losses in {
    "pairs": [MultipleNegativesRankingLoss],
    "n-tuples": [MultipleNegativesRankingLoss, MarginMSELoss, DistillKLDivLoss],
    "triplets": [MultipleNegativesRankingLoss, TripletLoss, MarginMSELoss],
}.items():
    for loss in losses:
        data = Dataset.from_parquet(str(given / f"{name}.parquet"), cache_dir=str(given / "cache"))
        if loss is TripletLoss:
            data = data.remove_columns("label")
        model = SentenceTransformer(str(given / "models" / "mean"), device="cpu")
        settings = SentenceTransformerTrainingArguments(
            str(given / "out"), max_steps=1, per_device_train_batch_size=len(data), report_to="none", use_cpu=True,
            save_strategy="no", disable_tqdm=True,
        )  # fmt: skip
        trained = SentenceTransformerTrainer(model, settings, train_dataset=data, loss=loss(model)).train()
        print(f"{name}: {loss.__name__}, {len(data)} rows of {data.column_names}, loss {trained.training_loss:.4f}")
        assert len(data) == rows[name], rows
        assert math.isfinite(trained.training_loss)
