"""Trains a small model for some steps: python3 train.py resnet|lstm|transformer [KEYWORD=VALUE ...], the keywords being those of opscope.torch.init;
stub="FILE" loads cuda_stub.cpp first, so that torch's own ranges (emit_nvtx) are there without CUDA."""
import ast
import ctypes
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

import opscope.torch

STEPS = 3


class Block(nn.Module):
    def __init__(self, n, m, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(n, m, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(m)
        self.conv2 = nn.Conv2d(m, m, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(m)
        self.short = nn.Sequential(nn.Conv2d(n, m, 1, stride, bias=False), nn.BatchNorm2d(m)) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return F.relu(y + self.short(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1)
        self.layer1 = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        x = self.layer1(F.relu(self.conv1(x)))
        return self.fc(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.lstm = nn.LSTM(16, 24, num_layers=2, batch_first=True)
        self.tags = nn.Linear(24, 10)

    def forward(self, x):
        y, _ = self.lstm(self.words(x))
        return self.tags(y[:, -1])


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True), 2)
        self.out = nn.Linear(32, 10)

    def forward(self, x):
        return self.out(self.encoder(self.words(x)).mean(1))


def model_of(kind):
    if kind == "resnet":
        return ResNet(), torch.randn(4, 3, 16, 16)
    return (Tagger() if kind == "lstm" else Translator()), torch.randint(50, (4, 7))


def train(kind):
    torch.manual_seed(1)
    model, x = model_of(kind)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x.repeat(STEPS, *[1] * (x.dim() - 1))), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss = None
    for batch, in data:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(batch), torch.arange(4))
        loss.backward()
        optimizer.step()
    return float(loss.detach())


if __name__ == "__main__":
    options = {k: ast.literal_eval(v) for k, v in (a.split("=", 1) for a in sys.argv[2:])}
    if "stub" in options:
        assert ctypes.CDLL(options.pop("stub")).install_cuda_stub()
        torch.cuda.is_available = lambda: True
    opscope.torch.init(**options)
    print(train(sys.argv[1]))
