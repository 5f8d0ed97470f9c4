"""The findings and counts of all ranks, which the first rank has when the job ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypedDict

from tspec.runtime.messages.findings import FindingRecord, FindingsWriter
from tspec.runtime.messages.summary import added, summary
from tspec.runtime.ranks.delivery import Delivery
from tspec.runtime.state import RuleState


class RuleTotals(TypedDict):
    """What a rank counted of one rule, as an object of JSON."""

    counts: dict[str, int]
    """Its instances by verdict, and its findings."""
    first: FindingRecord | None


RankTotals = dict[str, RuleTotals]
"""Rule -> its totals."""


class RankResults:
    """What one rank found and counted, and its part in bringing this to the first rank.

    `report` takes a diagnostic: results that did not come.
    """

    def __init__(
        self,
        rules: Sequence[RuleState],
        findings: FindingsWriter,
        delivery: Delivery,
        report: Callable[[str], None],
    ) -> None:
        self._rules = rules
        self._findings = findings
        self.delivery = delivery
        self._report = report
        self._of_others: list[RankTotals] = []
        """The totals of the other ranks; filled on the first rank only."""
        self._is_said = False
        """The first rank prints this rank's counts."""

    def give_files(self, rank: int, patience: float, note: Callable[[str], None]) -> bool:
        """Give the files of this machine to the first rank, or take those of other machines.

        Return True if some did not come. `note` takes why files could not be given.
        """
        path, counted = self._findings.path, self._findings.counted
        if path is None or counted is None:
            return False
        if not self.delivery.is_receiver:
            files = (path, counted)
            why = self.delivery.give(
                [one.read_text(encoding="utf-8") if one.exists() else "" for one in files]
            )
            if why:
                note(
                    f"rank {rank}: what it found could not be given to rank 0 ({why}): it is in {path}"
                )
            return False
        lacking = []
        for other, texts in self.delivery.take(patience):
            if texts is None:
                lacking.append(other)
                continue
            file = path.with_name(f"{path.stem}-rank-{other}.jsonl")
            if texts[1]:
                file.with_suffix(".counts.json").write_text(texts[1], encoding="utf-8")
            file.write_text(texts[0], encoding="utf-8")
        if lacking:
            self._lacks(
                lacking, "did not come from another machine; it is in the cache folder there"
            )
        return bool(lacking)

    def share_counts(self, patience: float, fails: bool) -> None:
        """Give this rank's counts to the first rank, or collect those of the others.

        A failing rank also prints its own summary, as a launcher may end the first rank before it
        prints.
        """
        delivery = self.delivery
        if not delivery.has_others:
            return
        if not delivery.is_receiver:
            why = delivery.give([json.dumps(self._totals())])
            self._is_said = not (why or fails)
            return
        lacking = []
        for rank, texts in delivery.take(patience):
            if texts is not None:
                self._of_others.append(json.loads(texts[0]))
            elif delivery.takes_part(rank):
                lacking.append(rank)
        if lacking:
            self._lacks(lacking, "did not come; it is not counted here")

    def summarize(self, rank: int) -> None:
        """Print the summary of the job, on the first rank.

        Another rank prints its own findings if the first one cannot.
        """
        if self._is_said or (rank and not self._findings.counts):
            return
        totals = (self._totals(), *self._of_others)
        tallies = []
        for rule in self._rules:
            of_ranks = [each[rule.declared.name] for each in totals]
            firsts = [each["first"] for each in of_ranks if each["first"] is not None]
            first = min(firsts, key=lambda found: found["step"], default=None)
            tallies.append((rule.declared, added(each["counts"] for each in of_ranks), first))
        head = f"rank {rank}: " if rank else ""
        for line, *details in summary(tallies):
            self._findings.tell(f"{head}{line}", *details)

    def _lacks(self, ranks: Sequence[int], why: str) -> None:
        others = ", ".join(map(str, ranks))
        self._report(f"what was found on rank{'s' * (len(ranks) > 1)} {others} {why}")

    def _totals(self) -> RankTotals:
        found = self._findings
        return {
            rule.declared.name: {
                "counts": {**rule.counts, "found": found.counts.get(rule.declared.number, 0)},
                "first": found.firsts.get(rule.declared.number),
            }
            for rule in self._rules
        }
