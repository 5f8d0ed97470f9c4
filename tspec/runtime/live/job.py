"""Follows a training job from inside, and notifies sinks of every edge.

`with LiveJob(spec, sinks):` watches torch until the end of the block; nothing of the script is
edited, no object of it is wrapped, and all that was exchanged comes back at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import nn

from tspec.runtime.edges import (
    CallCounter,
    Context,
    ForkListener,
    LoopSpan,
    Sink,
    StepSelector,
    WaitListener,
    WatchedCall,
)
from tspec.runtime.live import activities, collectives, notify, steps
from tspec.runtime.live.adapter import Adapter
from tspec.runtime.live.by_hand import HandUpdates
from tspec.runtime.live.departures import DepartedSubjects
from tspec.runtime.live.fields import FieldReader
from tspec.runtime.live.functions import WatchedFunctions
from tspec.runtime.live.instrument.frames import call_with_room
from tspec.runtime.live.instrument.locations import ScriptLocations
from tspec.runtime.live.instrument.threads import IsolatedWork, ThreadState, UnseenCalls
from tspec.runtime.live.mechanisms import install
from tspec.runtime.live.mechanisms.forward import MODULE_CALL
from tspec.runtime.live.module_tree import has_parameters
from tspec.runtime.live.name_tables import Naming
from tspec.runtime.live.pending import (
    PendingCall,
    awaited,
    is_coalesced,
    is_collective,
    without_tensors,
)
from tspec.runtime.live.process import PROCESS
from tspec.runtime.live.source import LiveSource
from tspec.runtime.live.watch import WatchSpec
from tspec.runtime.live.watched import Arguments, Listener, Role, WatchedFunction, asked
from tspec.runtime.messages.say import warn
from tspec.runtime.sources import Sources
from tspec.values import Datum

Listening = list[tuple[Role, Listener]]


class LiveJob(LiveSource):
    """One process of a training job, from `__enter__` to `__exit__`. It is the `StateSource` of its
    sinks.

    Faults of tspec itself are logged once each and never reach the job. Exceptions of a sink do.
    `warn` shows a message to the person at the terminal, once each.
    """

    def __init__(
        self,
        spec: WatchSpec,
        sinks: Sequence[Sink],
        sources: Sources | None = None,
        adapters: Sequence[Adapter] = (),
        warn: Callable[[str], None] = warn,
    ) -> None:
        super().__init__(spec, warn)
        self._locations = ScriptLocations(sources or Sources(Path.cwd()))
        self.sinks = tuple(sinks)
        only = self.sinks[0] if len(self.sinks) == 1 else None
        self._counter: CallCounter | None = only if isinstance(only, CallCounter) else None
        self.adapters = tuple(adapters)
        self.state.models.naming_of = self._naming_of
        self.active = False
        self._forked_at = Context()
        """The loop position of the parent process at the fork that began this one."""
        self.functions = WatchedFunctions(self)
        self._calls = 0
        self._lock = PROCESS.lock
        self._closed = False
        self._finished = False
        self.fake_mode = torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE)
        """The mode of fake tensors in which the whole job runs, or None."""
        self.calibrating = 0
        """The number of running calls that take statistics."""
        self.joins = False
        """The loop is within `Join`: this rank may leave it at any batch, and then wait for others."""
        self.watches = True
        """Some sink takes the calls of the step that is open."""
        self._before_next: list[Callable[[], None]] = []
        self._departed = DepartedSubjects(self.state)
        self._by_hand = HandUpdates(self.state.optimizers.things, self._readable)
        self.chunk: int | None = None
        """The micro-batch that a stage of a pipeline passes on or back, from 1; None outside of such a pass."""

    # --- the life of a job ----------------------------------------------------------------------

    def __enter__(self) -> LiveJob:
        try:
            PROCESS.enter(self)
            with PROCESS.indexed():
                for adapter in self.adapters:
                    adapter.install(self)
                install(self)
        except BaseException:
            self.close()
            raise
        self._closed = False
        self.active = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ended = kind is None or (kind is SystemExit and getattr(error, "code", 1) in (None, 0))
        try:
            if ended:
                self.finish()
        finally:
            self.close()

    def finish(self) -> None:
        """The run ended normally."""
        if self._finished or not self.active:
            return
        self._finished = True
        if (unseen := steps.unseen_updates(self.place)) is not None:
            self.say(unseen)
        with self._lock:
            self._tick()
            try:
                for each in self.state.pending:
                    self.arrived(each, waited_for=False)
                self._tell(lambda sink: sink.finish(self))
            except notify.SinkError as failure:
                raise failure.error from None
            finally:
                self._departed.release()

    def forked(self, worker: int | None) -> None:
        """This process is a fork of the one that was followed: a job of its own, or a loader's worker."""
        self._lock = PROCESS.lock
        self.threads = ThreadState()
        self.place = steps.LoopState()
        # Until it trains itself it works for that loop: it writes a checkpoint, or evaluates.
        self._forked_at = self._context = self._context if worker is None else Context()
        self._location = self.first_step = None
        self._seq = self._calls = 0
        self._finished = self.joins = False
        self.watches = True
        self._before_next.clear()
        for sink in self.sinks:
            if isinstance(sink, ForkListener):
                self.quietly(partial(sink.forked, self, worker))

    def departs(self, thing: Any) -> None:
        """An optimizer or a schedule is about to be freed: it may be kept until the run ends."""
        if self.active and not self._finished:
            self._departed.departs(thing)

    def built(self) -> None:
        """A module or an optimizer was built. Objects that the script released are freed."""
        self._departed.release()

    def close(self) -> None:
        """Stop watching, and put everything back."""
        self.active = False
        self._closed = True
        self._departed.release()
        PROCESS.leave(self)
        self.functions.forget()

    # --- what happens ---------------------------------------------------------------------------

    def around(
        self,
        watched: WatchedFunction,
        original: Callable[..., Any],
        args: Arguments,
        kwargs: dict[str, Any],
    ) -> Datum:
        """Make one call of a watched function, and notify its listeners."""
        if watched.hides:
            with UnseenCalls(PROCESS.quiet):
                return original(*args, **kwargs)
        if watched.room:
            original = partial(call_with_room, original)
        threads = self.threads
        stack = threads.stack
        subject = args[0] if args else None
        listeners, events = watched.listeners, watched.events if self.watches else []
        if listeners:
            listeners = asked(listeners, subject, stack)
        if events:
            events = asked(events, subject, stack)
        if not listeners and not events:
            return original(*args, **kwargs)
        threads.frames.append((id(subject) if args else 0, watched.keys))
        depth = len(stack)
        if not listeners:
            events = [each for each in events if not self._is_passed_over(each[0])]
        if not listeners and not events:
            try:
                return original(*args, **kwargs)
            finally:
                threads.frames.pop()
                del stack[depth:]
        tokens: list[Any] = []
        opened: list[tuple[WatchedCall, FieldReader]] = []
        try:
            try:
                skipped = self._before(listeners, tokens, (events, opened), args, kwargs)
                result = None if skipped else original(*args, **kwargs)
            except BaseException as error:
                self._after(listeners, tokens, opened, (args, kwargs, None), error)
                raise
            self._after(listeners, tokens, opened, (args, kwargs, result), None)
            return result
        finally:
            threads.frames.pop()
            if len(stack) > depth:
                del stack[depth:]

    def _is_passed_over(self, role: Role) -> bool:
        """True if the call is passed over: the only sink counts it and reads nothing of it.

        Such a call is put on the stack, and no sink is notified.
        """
        counter = self._counter
        if counter is None or self.place.turn == 0 or role.name not in counter.passable:
            return False
        stack = self.threads.stack
        try:
            with self._lock:
                self._calls += 1
                parent = stack[-1] if stack else None
                call = WatchedCall(self._calls, parent, role.name, role.path, 0, self._context)
                if self._closed or not counter.passes_over(call, self):
                    return False
        except Exception as fault:
            self.fault(f"before {role.path}", fault)
            return False
        stack.append(call)
        return True

    def _before(
        self,
        listeners: Listening,
        tokens: list[Any],
        events: tuple[list[tuple[Role, FieldReader]], list[tuple[WatchedCall, FieldReader]]],
        args: Arguments,
        kwargs: dict[str, Any],
    ) -> bool:
        asked, opened = events
        skipped = False
        where = ""
        try:
            with IsolatedWork(PROCESS.quiet), self._lock:
                if self._closed:
                    return False
                for role, listener in listeners:
                    where = role.path or role.key
                    tokens.append(listener.before(args, kwargs))
                if asked and self.place.turn == 0:
                    self._find_models(asked, args, kwargs)
                for role, reader in asked:
                    where = role.path
                    call = self._call(role, reader.before(args, kwargs, self.state, self))
                    opened.append((call, reader))
                    skipped |= self._begin(call)
        except notify.SinkError as failure:
            raise failure.error from None
        except Exception as fault:
            self.fault(f"before {where}", fault)
        return skipped

    def _naming_of(self, module: nn.Module) -> Naming | None:
        """The naming of a model's contents by the first framework that knows the model."""
        try:
            found = (adapter.naming(module, self.say) for adapter in self.adapters)
            return next((naming for naming in found if naming is not None), None)
        except Exception as fault:  # a framework of another version: its local names are left
            self.fault("naming a model", fault)
            return None

    def _find_models(
        self, asked: list[tuple[Role, FieldReader]], args: Arguments, kwargs: dict[str, Any]
    ) -> None:
        """Before the first step, a module with parameters that a watched function is given is a
        model, as in a framework's set-up.
        """
        if all(role.event is None or role.event.name == "forward" for role, _ in asked):
            return
        for thing in (*args, *kwargs.values()):
            if isinstance(thing, nn.Module) and has_parameters(thing):
                self.state.models.handed_over(thing)

    def _after(
        self,
        listeners: Listening,
        tokens: list[Any],
        opened: list[tuple[WatchedCall, FieldReader]],
        outcome: tuple[Arguments, dict[str, Any], Any],
        error: BaseException | None,
    ) -> None:
        args, kwargs, result = outcome
        where = ""
        try:
            with IsolatedWork(PROCESS.quiet), self._lock:
                if self._closed:
                    return
                for call, reader in reversed(opened):
                    where = call.callable
                    if error is None:
                        is_module = call.callable == MODULE_CALL  # it returns, whatever it made
                        handle = awaited(result) if reader.reads_result and not is_module else None
                        given = result if handle is None else handle
                        after = partial(self._fields_after, reader, args, kwargs)
                        pending = self.state.pending
                        if reader.reads_result and pending.coalesces:
                            group = reader.argument("group", args, kwargs)
                            if is_coalesced(call.callable, group):
                                pending.postpone(call, after)
                                continue
                        if handle is not None:
                            pending.add(PendingCall(call, handle, partial(after, given)))
                            continue
                        call.fields.update(after(given))
                    self._end(call, error)
                if error is not None and opened and is_collective(opened[0][0].callable):
                    self._say_failed([call for call, _ in opened])
                # Listeners after one that failed before the call have no token.
                for (role, listener), token in zip(listeners, tokens, strict=False):
                    where = role.path or role.key
                    if error is None:
                        listener.returned(token, args, kwargs, result)
                    listener.ended(token)
        except notify.SinkError as failure:
            raise failure.error from error
        except Exception as fault:
            self.fault(f"after {where}", fault)

    def _call(self, role: Role, fields: dict[str, Datum]) -> WatchedCall:
        stack = self.threads.stack
        self._calls += 1
        parent = stack[-1] if stack else None
        return WatchedCall(
            self._calls,
            parent,
            role.name,
            role.path,
            self._tick(),
            self._context,
            fields,
            location=self._locations.here(),
        )

    def _begin(self, call: WatchedCall) -> bool:
        """Tell that a call begins. True if a sink asks to leave it out."""
        self.threads.stack.append(call)
        return notify.begin(self.sinks, call, self)

    def _end(self, call: WatchedCall, error: BaseException | None) -> None:
        call.end = self._tick()
        call.error = None if error is None else type(error).__name__
        notify.end(self.sinks, call, self)
        stack = self.threads.stack
        if call in stack:
            del stack[stack.index(call) :]

    def _fields_after(
        self, reader: FieldReader, args: Arguments, kwargs: Mapping[str, Any], result: Any
    ) -> dict[str, Datum]:
        return reader.after(args, kwargs, result, self.state, self)

    def _say_failed(self, calls: list[WatchedCall]) -> None:
        """Report a collective that raised. No rule is decided across its group."""
        given = next((each.fields["tensor"] for each in calls if "tensor" in each.fields), None)
        named = self.state.tensor_name(given) if isinstance(given, torch.Tensor) else None
        self.say(collectives.failed(self.rank, calls, named))

    def arrived(self, pending: PendingCall, waited_for: bool = True) -> None:
        """A call ends late: its output was waited for, or will not be known."""
        found = pending.fields()
        pending.call.fields.update(found if waited_for else without_tensors(found))
        self.state.pending.remove(pending)
        self._end(pending.call, None)

    def happened(self, role: Role, values: Mapping[str, Any]) -> None:
        """Tell of a call that is over already, with fields from values at hand."""
        if role.reader is None or not self.watches:
            return
        call = self._call(role, role.reader.of(values, self.state, self))
        self._begin(call)
        self._end(call, None)

    def do(self, activity: activities.Activity) -> None:
        """The run made an activity from which steps are derived.

        All boundaries that follow have one instant.
        """
        if isinstance(activity, (activities.Backward, activities.Update)) and activity.ended:
            self._location = self._locations.here()
        waiting, self._before_next = self._before_next, []
        if not isinstance(activity, activities.Joined):
            for each in waiting:
                each()
        before = self.place
        after = steps.advance(before, self._by_hand.look(before, activity))
        if after is before:
            return
        opened = steps.openings(before, after)
        if any(span == "step" for span, _ in opened):
            for overdue in self.state.pending.overdue(after.step):
                self.arrived(overdue, waited_for=False)
        self.place = after
        self.state.loaders.trained_on = after.feeding
        self.state.loaders.trained_on_now = after.feeding_now
        at = after if after.turn or after.step else self._forked_at
        self._context = Context(at.step, at.epoch, after.microbatch, after.phase)
        if before.turn == 0 < after.turn:
            self.first_step = after.step
        if not opened:
            return
        if before.turn == 0 < after.turn:
            # A spawned process loads its script without an import: look for its functions now.
            self.functions.modules_changed()
        if any(span == "step" for span, _ in opened):
            self._departed.release()
            self.state.step_opens()
            self._departed.step_opened()
        self._tick()
        try:
            for span, index in opened:
                self._bound(span, index)
        finally:
            self.watches = any(
                not isinstance(sink, StepSelector) or sink.watches for sink in self.sinks
            )

    def do_before_next(self, action: Callable[[], None]) -> None:
        """Do it right before the next activity. If the rank joins before there is one, it is left out."""
        self._before_next.append(action)

    def _bound(self, span: LoopSpan, index: int) -> None:
        self._tell(lambda sink: sink.boundary(span, index, self))

    @property
    def joined(self) -> bool:
        """This rank has no more batches; it only answers the collectives of the other ranks (`Join`)."""
        return self.place.joined

    def waits(self) -> None:
        """A step is done, and the process is about to wait for another rank: notify the sinks that listen for it."""

        def tell(sink: Sink) -> None:
            if isinstance(sink, WaitListener):
                sink.waits(self)

        self._tell(tell)

    def quietly(self, action: Callable[[], None]) -> None:
        """Do something of tspec's own outside of a watched call, under the same protection."""
        try:
            with IsolatedWork(PROCESS.quiet), self._lock:
                if not self._closed:
                    action()
        except notify.SinkError as failure:
            raise failure.error from None
        except Exception as fault:
            self.fault("in between", fault)

    def _tell(self, action: Callable[[Sink], None]) -> None:
        with IsolatedWork(PROCESS.quiet):
            notify.tell(self.sinks, action)

    def _tick(self) -> int:
        self._seq += 1
        return self._seq
