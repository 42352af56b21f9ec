"""One training run of `bench/data/measured.csv`, as its authors' loops do it: `bench/data/README.md` says how that is known.

    CUBLAS_WORKSPACE_CONFIG=:0:0 python train.py --model VGG16 --optimizer SGD --batch 657 --zero-grad before-backward
    python train.py --model T5-small --optimizer AdamW --batch 31 --zero-grad end --lengths 128,96,128,128

Of a conv net it prints what PyTorch had reserved when their monitor looked for the first time. Only shapes matter on the phantom, so images and texts are made up: 86 × 86 pixels, and lines of text of given lengths.
"""

import argparse

import torch

# Their loops ask for three iterations and stop after the fourth.
ITERATIONS = 4
LONGEST_LINE = 128
# By their names for them: torchvision's, and how many classes.
CONV_NETS = {
    "ConvNeXtTiny": ("convnext_tiny", 1000),
    "MnasNet": ("mnasnet1_0", 10),
    "MobeNetV3Large": ("mobilenet_v3_large", 10),
    "MobileNetV2": ("mobilenet_v2", 1000),
    "RegNetX400MF": ("regnet_x_400mf", 1000),
    "RegNetY400MF": ("regnet_y_400mf", 1000),
    "ResNet101": ("resnet101", 1000),
    "ResNet152": ("resnet152", 1000),
    "VGG16": ("vgg16", 1000),
    "VGG19": ("vgg19", 1000),
}


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--optimizer", required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--zero-grad", choices=["start", "before-backward", "end"], default="end")
    parser.add_argument("--lengths", default=",".join([str(LONGEST_LINE)] * ITERATIONS))
    return parser.parse_args()


def images(batch):
    """Batches as torchvision's CIFAR-10 gives them after `Resize(86, 86)`."""
    for _ in range(ITERATIONS):
        yield torch.zeros(batch, 3, 86, 86), torch.zeros(batch, dtype=torch.long)


def texts(batch, lengths):
    """Batches as the collator for causal language models makes them: padded to the longest line."""
    for length in lengths:
        ids = torch.ones(batch, length, dtype=torch.long)
        yield {"input_ids": ids, "attention_mask": ids.clone(), "labels": ids.clone()}


def train_conv_net(model, optimizer, batches, zero_grad):
    model.to("cuda")
    # Their monitor, a thread, is started just before and not waited for: the weights are there when it looks first.
    print("WHEN THE MONITOR BEGAN", torch.cuda.memory_reserved(), flush=True)
    model.train()
    optimizer = optimizer(model.parameters(), lr=1e-3)
    criterion = torch.nn.CrossEntropyLoss()
    # The names are the loop's own: what they hold lives until they are bound again.
    for inputs, labels in batches:
        if zero_grad == "start":
            optimizer.zero_grad()
        inputs, labels = inputs.to("cuda"), labels.to("cuda")
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        if zero_grad == "before-backward":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        _, predictions = torch.max(outputs, 1)
        if zero_grad == "end":
            optimizer.zero_grad()


def train_transformer(model, optimizer, batches, zero_grad):
    model.train()
    # Before the model is moved: its parameters keep their identity.
    optimizer = optimizer(model.parameters(), lr=1e-3)
    model.to("cuda")
    for batch in batches:
        if zero_grad == "start":
            optimizer.zero_grad()
        batch = {name: tensor.to("cuda") for name, tensor in batch.items()}
        outputs = model(**batch)
        loss = outputs.loss
        if zero_grad == "before-backward":
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if zero_grad == "end":
            optimizer.zero_grad()


def transformer(name):
    """The model of a checkpoint's configuration, with random weights: the hub's equal the library's defaults here."""
    import transformers as hub

    match name:
        case "openai-community/gpt2":
            return hub.GPT2LMHeadModel(hub.GPT2Config())
        case "distilbert/distilgpt2":
            return hub.GPT2LMHeadModel(hub.GPT2Config(n_layer=6))
        case "facebook/opt-125m":
            return hub.OPTForCausalLM(hub.OPTConfig())
        case "T5-small":
            return hub.T5ForConditionalGeneration(hub.T5Config(decoder_start_token_id=0))
    raise SystemExit(f"error: no model is called `{name}`")


def main(asked):
    # Their monitor starts after this call, which makes the context: its memory is not in what they measured.
    torch.cuda.set_per_process_memory_fraction(1.0)
    optimizer = getattr(torch.optim, asked.optimizer)
    if asked.model in CONV_NETS:
        import torchvision

        name, classes = CONV_NETS[asked.model]
        model = getattr(torchvision.models, name)(num_classes=classes)
        train_conv_net(model, optimizer, images(asked.batch), asked.zero_grad)
    else:
        lengths = [int(length) for length in asked.lengths.split(",")]
        train_transformer(transformer(asked.model), optimizer, texts(asked.batch, lengths), asked.zero_grad)


if __name__ == "__main__":
    main(arguments())
