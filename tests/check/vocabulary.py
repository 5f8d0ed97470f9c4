"""The small vocabulary of which random rules speak and random jobs play."""

from __future__ import annotations

VOCABULARY = """edition 2026

module t

context {
  step: int
  run.step: int
  epoch: int
  microbatch: int
  phase: train | eval
  rank: int
  loss: float
  enabled: bool
}

group world = call torch.distributed.distributed_c10d._get_default_group
group dp
group tp

entity parameter {
  data: tensor
  grad: tensor?
  requires_grad: bool
  lr: float
  order: int
  module: module
  names: set<string>
  label: string
  ranks: group?
}

entity module {
  class: class
  training: bool
  parameters: set<parameter>
  attributes: map<string, scalar>
  next: module?
}

entity batch {
  tensors: list<tensor>
  size: int
}

event forward = call train.forward {
  module: module
  inputs: list<tensor>
  splits: list<int>
  group: group
  limit: int?
  output: tensor? = result
  cost: float = result
}

event update = call train.update {
  module: module
  lr: float
  ok: bool = result
}

event save = call train.save {
  tag: string
}
"""
