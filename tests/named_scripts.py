"""The scripts whose names by a snapshot are compared with those by a recorder, in a test and in bench/names.py."""

ALL = [
    "amp_transformer", "bert_large_adamw", "blocks_flags", "cnn_zoo", "compiled_transformer", "conv_flags", "detection",
    "distributed_one", "gan_two_optimizers", "garbage", "gpt2_trainer", "late", "leak", "lightning_module", "lstm",
    "nn_transformer_adam", "oom_caught", "ordinary", "owners", "record_stream", "resnet50_sgd", "resnet_flags", "sd_unet",
    "timm_vit", "workers",
]  # fmt: skip

# The place of a rank, for those that ask for one.
WORLD = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29577"}
