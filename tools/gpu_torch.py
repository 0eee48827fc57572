"""Trains a small model under opscope.torch, for tools/gpu-check: what runs in it is to have a layer, an op and a direction.

usage: python3 gpu_torch.py resnet|gpt fp32|bf16|amp [compile] [--device=cuda]

Prints the last loss, or why this cannot be done here ("skipped: ..."). The loss is a module inside the model, so that everything but the optimizer has a layer. On a device that is none (cpu) the models are smaller.
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

unimportable = None
try:
    import opscope.torch
except ImportError as e:
    unimportable = e

STEPS = 4


class Block(nn.Module):
    def __init__(self, n, m, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(n, m, 3, stride, 1, bias=False), nn.BatchNorm2d(m)
        self.conv2, self.bn2 = nn.Conv2d(m, m, 3, 1, 1, bias=False), nn.BatchNorm2d(m)
        self.short = nn.Sequential(nn.Conv2d(n, m, 1, stride, bias=False), nn.BatchNorm2d(m)) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.short(x))


class ResNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.Sequential(*(Block(width * a, width * b, b // a) for a, b in ((1, 1), (1, 2), (2, 2), (2, 4))))
        self.head = nn.Linear(4 * width, 10)

    def forward(self, x):
        return self.head(torch.flatten(F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1), 1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = (part.reshape(n, t, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        weights = torch.matmul(q, k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        weights = torch.softmax(weights + torch.full((t, t), -1e4, dtype=x.dtype, device=x.device).triu(1), -1)
        return self.out(torch.matmul(weights, v).transpose(1, 2).reshape(n, t, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention, self.norm2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, words, width, length, layers=2, heads=4):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(length, width))
        self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.norm(self.layers(self.words(x) + self.places)))


class Task(nn.Module):
    """A model with its loss."""

    def __init__(self, model):
        super().__init__()
        self.model, self.loss = model, nn.CrossEntropyLoss()

    def forward(self, x, target):
        return self.loss(self.model(x).flatten(0, -2).float(), target.flatten())


def task_of(kind, device):
    """(task, input, target) that keep a GPU busy; where there is none, small ones."""
    gpu = device == "cuda"
    if kind == "resnet":
        n, size = (64, 64) if gpu else (2, 8)
        return Task(ResNet(64 if gpu else 4)), torch.randn(n, 3, size, size, device=device), torch.randint(10, (n,), device=device)
    words, width, n, length = (8192, 512, 8, 256) if gpu else (50, 16, 2, 5)
    x = torch.randint(words, (n, length), device=device)
    return Task(GPT(words, width, length)), x, x.roll(-1, 1)


def scaler_of(device):
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device, enabled=device == "cuda")
    return torch.cuda.amp.GradScaler(enabled=device == "cuda")


def train(kind, precision, compiled, device):
    torch.manual_seed(1)
    task, x, target = task_of(kind, device)
    task = task.to(device)
    if precision == "bf16":
        task, x = task.to(torch.bfloat16), x if kind == "gpt" else x.to(torch.bfloat16)
    run = torch.compile(task) if compiled else task
    optimizer = torch.optim.SGD(task.parameters(), lr=0.01, momentum=0.9)
    scaler = scaler_of(device)
    for _ in range(STEPS):
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.float16 if device == "cuda" else torch.bfloat16, enabled=precision == "amp"):
            loss = run(x, target)
        if precision == "amp":
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            optimizer.step()
    return float(loss.detach())


def why_not(precision, compiled, device):
    """What is missing here, or None."""
    if unimportable:
        return f"opscope.torch is not for this Python: {unimportable}"
    if compiled and not hasattr(torch, "compile"):
        return f"torch {torch.__version__} has no torch.compile"
    if precision == "bf16" and device == "cuda" and not torch.cuda.is_bf16_supported():
        return "this GPU has no bfloat16"
    return None


def main(arguments):
    words = [w for w in arguments if not w.startswith("--")]
    device = next((w[len("--device="):] for w in arguments if w.startswith("--device=")), "cuda")
    kind, precision, compiled = words[0], words[1], "compile" in words[2:]
    why = why_not(precision, compiled, device)
    if why:
        print("skipped:", why)
        return
    opscope.torch.init()
    print("loss", train(kind, precision, compiled, device))


if __name__ == "__main__":
    main(sys.argv[1:])
