"""Lightning with two optimizers stepped by hand, mixed precision and a validation pass."""

import lightning
import torch
from torch import nn
from torch.nn import functional as F


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, width, 3, 2, 1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.norm = nn.BatchNorm2d(2 * width)
        self.mean, self.spread = nn.Linear(2 * width * 256, 64), nn.Linear(2 * width * 256, 64)

    def forward(self, x):
        x = F.relu(self.norm(self.conv2(F.relu(self.conv1(x))))).flatten(1)
        return self.mean(x), self.spread(x)


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width, self.first = width, nn.Linear(64, 2 * width * 256)
        self.conv1, self.conv2 = nn.ConvTranspose2d(2 * width, width, 4, 2, 1), nn.ConvTranspose2d(width, 3, 4, 2, 1)

    def forward(self, z):
        x = F.relu(self.first(z)).view(-1, 2 * self.width, 16, 16)
        return torch.sigmoid(self.conv2(F.relu(self.conv1(x))))


class Autoencoder(lightning.LightningModule):
    def __init__(self, width=32):
        super().__init__()
        self.automatic_optimization = False
        self.encoder, self.decoder = Encoder(width), Decoder(width)

    def loss(self, images):
        mean, spread = self.encoder(images)
        restored = self.decoder(mean + torch.randn_like(mean) * (0.5 * spread).exp())
        return F.mse_loss(restored.float(), images) - 0.5 * (1 + spread - mean.pow(2) - spread.exp()).mean()

    def training_step(self, batch, _):
        optimizers = self.optimizers()
        loss = self.loss(batch)
        for optimizer in optimizers:
            optimizer.zero_grad()
        self.manual_backward(loss)
        for optimizer in optimizers:
            optimizer.step()

    def validation_step(self, batch, _):
        self.log("loss", self.loss(batch))

    def configure_optimizers(self):
        return [torch.optim.Adam(self.encoder.parameters()), torch.optim.NAdam(self.decoder.parameters())]


images = torch.utils.data.DataLoader(torch.rand(96, 3, 64, 64), batch_size=32)
trainer = lightning.Trainer(
    accelerator="gpu", devices=1, precision="bf16-mixed", max_epochs=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
)  # fmt: skip
trainer.fit(Autoencoder(), images, images)
