"""Many kinds of convolution in one network: transposed, grouped, depthwise, dilated, 1-D, 3-D, channels-last, and a GRU."""

import torch
from torch import nn

BATCH = 8
STEPS = 50

torch.backends.cudnn.benchmark = True


class Zoo(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(
            nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
            nn.Conv2d(64, 128, 3, padding=1, groups=4), nn.BatchNorm2d(128), nn.ReLU(inplace=True),
            nn.Conv2d(128, 128, 5, padding=2, groups=128), nn.Conv2d(128, 128, 1), nn.ReLU(inplace=True),
            nn.Conv2d(128, 64, 3, padding=2, dilation=2), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
            nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1), nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        )  # fmt: skip
        self.video = nn.Sequential(
            nn.Conv3d(3, 16, 3, padding=1), nn.BatchNorm3d(16), nn.ReLU(), nn.MaxPool3d(2),
            nn.ConvTranspose3d(16, 16, 2, stride=2), nn.AdaptiveAvgPool3d(1), nn.Flatten(),
        )  # fmt: skip
        self.sound = nn.Sequential(nn.Conv1d(1, 64, 25, stride=4, padding=11), nn.BatchNorm1d(64), nn.ReLU())
        self.recurrent = nn.GRU(64, 64, num_layers=2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(32 + 16 + 128, 10)

    def forward(self, image, video, sound):
        steps, _ = self.recurrent(self.sound(sound).transpose(1, 2))
        return self.head(torch.cat([self.image(image), self.video(video), steps[:, -1]], dim=1))


device = "cuda"
model = Zoo().to(device)
model.image.to(memory_format=torch.channels_last)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)

model.train()
for step in range(STEPS):
    image = torch.randn(BATCH, 3, 128, 128).to(device, memory_format=torch.channels_last)
    video = torch.randn(BATCH, 3, 8, 56, 56).to(device)
    sound = torch.randn(BATCH, 1, 1024).to(device)
    labels = torch.randint(10, (BATCH,)).to(device)
    loss = nn.functional.cross_entropy(model(image, video, sound), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
