"""What ordinary training scripts do with values: losses, accuracy, norms, checks, the best model so far, a checkpoint."""

import copy
import io
import math

import torch
from torchvision.models import resnet50

torch.manual_seed(0)
device = "cuda"
model = resnet50().to(device)
average = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
scaler = torch.amp.GradScaler(device)
criterion = torch.nn.CrossEntropyLoss()
best, seen, correct, running = math.inf, 0, 0, 0.0
losses, confusion = [], torch.zeros(10, 10, device=device)

for step in range(3):
    images, labels = torch.randn(8, 3, 224, 224), torch.randint(0, 1000, (8,))
    images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
    with torch.autocast(device, torch.float16):
        logits = model(images)
        loss = criterion(logits, labels)
    if not torch.isfinite(loss):
        raise RuntimeError("the loss is not finite")
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if norm.isnan() or norm > 1000:
        print("skipped")
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    scheduler.step()
    with torch.no_grad():
        for ours, theirs in zip(average.parameters(), model.parameters()):
            ours.lerp_(theirs, 0.01)
    predicted = logits.argmax(1)
    correct += (predicted == labels).sum().item()
    top5 = logits.topk(5, dim=1).indices
    in_top5 = (top5 == labels[:, None]).any(1).float().mean().item()
    confusion.index_put_((labels % 10, predicted % 10), torch.ones(8, device=device), accumulate=True)
    seen += len(labels)
    running = 0.9 * running + 0.1 * loss.item()
    losses.append(loss.detach().cpu())
    if loss < best:
        best = loss.item()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())
    print(f"step {step} loss {loss.item():.3f} norm {float(norm):.2f} accuracy {correct / seen:.2f} {in_top5:.2f} {predicted[0].item()}")
print(sum(losses) / len(losses), confusion.cpu().numpy().sum(), torch.stack(losses).mean().tolist())
