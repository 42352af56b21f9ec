"""GPT-2 (124 M parameters) through transformers.Trainer, on random tokens."""

import tempfile

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

TOKENS = 512


class RandomTokens(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        ids = torch.randint(50257, (TOKENS,))
        return {"input_ids": ids, "labels": ids}


with tempfile.TemporaryDirectory() as output:
    trainer = Trainer(
        model=GPT2LMHeadModel(GPT2Config()),
        args=TrainingArguments(
            output_dir=output,
            max_steps=50,
            per_device_train_batch_size=4,
            learning_rate=5e-5,
            logging_steps=1,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
        ),
        train_dataset=RandomTokens(),
    )
    trainer.train()
