"""One step of Tevatron's trainer on its export, which its own reader takes from a folder."""

import json
import math
import sys
from importlib.metadata import version
from pathlib import Path

from tevatron.arguments import DataArguments, DenseTrainingArguments, ModelArguments
from tevatron.data import QPCollator, TrainDataset
from tevatron.datasets import HFTrainDataset
from tevatron.modeling import DenseModel
from tevatron.trainer import DenseTrainer
from transformers import AutoTokenizer, BertTokenizer

given = Path(sys.argv[1])
rows = json.loads((given / "ours.json").read_text())["rows"]
print("Tevatron", version("tevatron"), "transformers", version("transformers"))
base = str(given / "models" / "mean")
# Tevatron hands token ids to its tokenizer, which a fast one does not take; the slow one needs the list of words.
words = AutoTokenizer.from_pretrained(base).get_vocab()
(given / "vocab.txt").write_text("\n".join(sorted(words, key=words.__getitem__)) + "\n")
tokenizer = BertTokenizer(str(given / "vocab.txt"))
for name, passages in (("tevatron", 4), ("tevatron-alone", 1)):
    model_settings = ModelArguments(base)
    data_settings = DataArguments(dataset_name=str(given / name), train_n_passages=passages)
    settings = DenseTrainingArguments(
        str(given / "out" / name), max_steps=1, per_device_train_batch_size=rows[name], report_to="none", use_cpu=True,
        save_strategy="no", remove_unused_columns=False, disable_tqdm=True,
    )  # fmt: skip
    read = HFTrainDataset(tokenizer, data_settings, str(given / "cache")).process()
    data = TrainDataset(data_settings, read, tokenizer)
    trainer = DenseTrainer(
        model=DenseModel.build(model_settings, data_settings, settings), args=settings, train_dataset=data,
        data_collator=QPCollator(tokenizer, max_p_len=64, max_q_len=32),
    )  # fmt: skip
    data.trainer = trainer
    trained = trainer.train()
    print(f"{name}, train_n_passages {passages}: {len(data)} examples, loss {trained.training_loss:.4f}")
    assert len(data) == rows[name]
    assert math.isfinite(trained.training_loss)
