"""ResNet-50 on ImageNet-sized images: SGD with momentum, fp32, batch 32."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models import resnet50

BATCH = 32
IMAGE = 224
STEPS = 50


class RandomImages(Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        return torch.randn(3, IMAGE, IMAGE), index % 1000


device = "cuda"
model = resnet50(weights=None).to(device)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

model.train()
for step, (images, labels) in enumerate(DataLoader(RandomImages(), batch_size=BATCH, shuffle=True)):
    images, labels = images.to(device), labels.to(device)
    loss = criterion(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
