"""Inference without any backward pass: `inference.py WAY`. Each says which round it is in."""

import sys

import torch
from torch import nn


def llama(layers=2, heads=8, groups=2, width=256, vocabulary=1000, **options):
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": width, "intermediate_size": 2 * width, "vocab_size": vocabulary, "num_hidden_layers": layers}
    # The end of a text is number 0: what is not known must not be taken for it.
    ends = {"eos_token_id": 0, "bos_token_id": 1, "pad_token_id": 0}
    heads = {"num_attention_heads": heads, "num_key_value_heads": groups}
    return LlamaForCausalLM(LlamaConfig(**sizes, **heads, **ends, **options)).to("cuda", torch.float16).eval()


def generate(**options):
    model = llama()
    for number in range(5):
        prompt = torch.randint(1, 999, (3, 10)).cuda()
        print("ROUND", number, tuple(model.generate(prompt, max_new_tokens=22, **options).shape))


class Attention(nn.Module):
    """Keeps keys and values of earlier tokens: it is given those of before, and gives all."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.all, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, past):
        batch, tokens, width = x.shape
        query, key, value = self.all(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            key, value = torch.cat((past[0], key), dim=2), torch.cat((past[1], value), dim=2)
        x = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.out(x.transpose(1, 2).reshape(batch, tokens, width)), (key, value)


class Sampler(nn.Module):
    def __init__(self, vocabulary=40000, width=1024, layers=2, heads=8):
        super().__init__()
        self.embed, self.decode = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.blocks = nn.ModuleList(Attention(width, heads) for _ in range(layers))

    def forward(self, tokens, past):
        x, kept = self.embed(tokens), []
        for block, before in zip(self.blocks, past):
            x, after = block(x, before)
            kept.append(after)
        return self.decode(x[:, -1]), kept

    @torch.no_grad()
    def sample(self, tokens, count):
        past, text = [None] * len(self.blocks), []
        for _ in range(count):
            scores, past = self(tokens, past)
            tokens = torch.multinomial(scores.softmax(-1), 1)
            token = tokens[0, 0].item()
            if token in (0, 1, 2):
                break
            text.append(token)
        return text


def sampled():
    """A model of more than toy size, with a cache in lists and a loop of its own."""
    model = Sampler().cuda().eval()
    for number in range(8):
        text = model.sample(torch.randint(3, 999, (2, 10)).cuda(), 30)
        print("ROUND", number, len(text), f"{text[0]}")


def evaluation(with_gradients):
    import torchvision

    model = torchvision.models.VisionTransformer(64, 16, 3, 4, 192, 768).cuda().eval()
    data = torch.utils.data.TensorDataset(torch.randn(160, 3, 64, 64), torch.randint(0, 1000, (160,)))
    right = 0
    with torch.set_grad_enabled(with_gradients):
        for number, (images, labels) in enumerate(torch.utils.data.DataLoader(data, batch_size=16)):
            print("ROUND", number)
            images = (images.cuda() - 0.5) / 0.25  # on the card: no batch is the data loader's own
            right += (model(images).argmax(1) == labels.cuda()).sum().item()


def pipeline():
    """Text encoder, denoising model and decoder, each with weights of chance."""
    from diffusers import AutoencoderKL, DDIMPipeline, DDIMScheduler, UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D",) * 2, "up_block_types": ("UpBlock2D",) * 2}
    unet = UNet2DModel(16, 4, 4, block_out_channels=(64, 128), layers_per_block=1, **blocks)
    decoder = AutoencoderKL(block_out_channels=(32, 64), down_block_types=("DownEncoderBlock2D",) * 2,
                            up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4).cuda()  # fmt: skip
    pipe = DDIMPipeline(unet, DDIMScheduler()).to("cuda")
    pipe.set_progress_bar_config(disable=True)
    for number in range(6):
        print("ROUND", number)
        latents = pipe(batch_size=2, num_inference_steps=8, output_type="np").images
        with torch.no_grad():
            pictures = decoder.decode(torch.from_numpy(latents).permute(0, 3, 1, 2).cuda()).sample
        print("DECODED", tuple(pictures.shape))


WAYS = {
    "generate": generate,
    "static": lambda: generate(cache_implementation="static", disable_compile=True),
    "beams": lambda: generate(num_beams=2, early_stopping=True),
    "sampled": sampled,
    "evaluation": lambda: evaluation(False),
    "with_gradients": lambda: evaluation(True),
    "pipeline": pipeline,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()
