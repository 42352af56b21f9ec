"""Transformers' Trainer with an encoder and a decoder, Adafactor, accumulated gradients and an evaluation."""

import tempfile

import torch
from transformers import T5Config, T5ForConditionalGeneration, Trainer, TrainingArguments


class Pairs(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        words = torch.randint(1, 4000, (96,))
        return {"input_ids": words[:64], "attention_mask": torch.ones(64, dtype=torch.long), "labels": words[64:]}


config = T5Config(vocab_size=4000, d_model=256, d_kv=32, d_ff=1024, num_layers=3, num_heads=8, decoder_start_token_id=0, pad_token_id=0)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder, per_device_train_batch_size=8, gradient_accumulation_steps=2, max_steps=2, optim="adafactor", bf16=True,
        report_to=[], save_strategy="no", eval_strategy="no", disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = Trainer(T5ForConditionalGeneration(config), arguments, train_dataset=Pairs(), eval_dataset=Pairs())
    trainer.train()
    trainer.evaluate()
