"""An LSTM classifier of sequences of different lengths."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset


class Words(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for _ in range(n):
            size = int(torch.randint(3, 12, (1,), generator=g))
            s = torch.randint(1, 50, (size,), generator=g)
            self.items.append((s, int((s > 25).float().mean() > 0.5)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(batch):
    lengths = torch.tensor([len(s) for s, _ in batch])
    return (
        pad_sequence([s for s, _ in batch], batch_first=True),
        lengths,
        torch.tensor([y for _, y in batch]),
    )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, num_layers=2, dropout=0.2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.emb(x), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.out(torch.cat([h[-2], h[-1]], 1))


torch.manual_seed(0)
train, test = (
    DataLoader(Words(512, 0), 32, shuffle=True, collate_fn=collate),
    DataLoader(Words(128, 1), 64, collate_fn=collate),
)
net = Net()
crit = nn.CrossEntropyLoss()
opt = torch.optim.RMSprop(net.parameters(), 2e-3)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=0, factor=0.5)
for epoch in range(3):
    net.train()
    total = 0.0
    for x, sizes, y in train:
        opt.zero_grad()
        loss = crit(net(x, sizes), y)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        total += loss.item() * len(y)
    net.eval()
    right = vl = 0
    with torch.no_grad():
        for x, sizes, y in test:
            o = net(x, sizes)
            vl += crit(o, y).item()
            right += (o.argmax(1) == y).sum().item()
    plateau.step(vl)
    print(f"epoch {epoch} loss {total / 512:.3f} acc {right / 128:.3f}")
