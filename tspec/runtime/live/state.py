"""The subjects of a job: which exist, their names and their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import is_, itemgetter
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from tspec.runtime.edges import Missing, Ref
from tspec.runtime.live.checkpoints.left_out import LeftOutParameters
from tspec.runtime.live.checkpoints.resumed import LoadedCheckpoints
from tspec.runtime.live.checkpoints.saved import (
    SavedModel,
    is_own_state,
    not_loaded,
    saved_models,
    written_to,
)
from tspec.runtime.live.checkpoints.stored import StoredTensors
from tspec.runtime.live.convert import VISITED, convert, tensors_in
from tspec.runtime.live.entities.data import BatchSubjects, LoaderSubjects
from tspec.runtime.live.entities.kind import UNKNOWN, ColumnReader, SubjectKind, asked
from tspec.runtime.live.entities.lengths import steps_left
from tspec.runtime.live.entities.messages import MessageSubjects
from tspec.runtime.live.entities.modules import ModuleSubjects, repeated_places
from tspec.runtime.live.entities.optimizers import (
    OptimizerSubjects,
    ParamGroupSubjects,
    SchedulerSubjects,
    held_by,
    steps_made,
)
from tspec.runtime.live.entities.others import GeneratorSubjects, ScalerSubjects, WrapperSubjects
from tspec.runtime.live.entities.parameters import (
    BufferSubjects,
    OptimizerStateSubjects,
    ParameterSubjects,
)
from tspec.runtime.live.entities.receive_buffers import ReceiveBuffers
from tspec.runtime.live.entities.stages import PipelineStages
from tspec.runtime.live.evaluate import FUNCTIONS, Evaluator, ExpressionError, compiled
from tspec.runtime.live.experts import UnusedExperts, sorted_splits
from tspec.runtime.live.instrument.written import WrittenModes
from tspec.runtime.live.losses.functions import loss_functions
from tspec.runtime.live.losses.loose import LooseParameters
from tspec.runtime.live.losses.mixed import MixedSamples
from tspec.runtime.live.losses.tokens import TokenHistory
from tspec.runtime.live.models import ModelRegistry
from tspec.runtime.live.name_tables import NamedParameter
from tspec.runtime.live.pending import PendingCalls
from tspec.runtime.live.placed import is_flattened, local, placements
from tspec.runtime.live.ranks import RankTopology
from tspec.runtime.live.samples.carried import STATES, CarriedStates
from tspec.runtime.live.samples.differentiated import differentiates_inputs
from tspec.runtime.live.samples.evaluations import HeldOutEvaluations
from tspec.runtime.live.samples.given import DataOfLayers, KnownSamples
from tspec.runtime.live.samples.held_out import HeldOutSamples
from tspec.runtime.live.samples.images import ViewedImages
from tspec.runtime.live.samples.leaks import LeakedTargets
from tspec.runtime.live.samples.noise import NoisedInputs
from tspec.runtime.live.samples.places import LookedUpPlaces
from tspec.runtime.live.samples.repeated import RepeatedEvaluations
from tspec.runtime.live.samples.scales import InputScales
from tspec.runtime.live.samples.tasks import EnlargedInputs, NewLabels
from tspec.runtime.live.sampling import MOST_TRAININGS, TrainingSampling
from tspec.runtime.live.updates.factors import ScheduleFactors
from tspec.runtime.live.updates.history import UpdateHistory
from tspec.runtime.live.updates.projected import ReadFeatures
from tspec.runtime.live.updates.schedules import ScheduleProgress
from tspec.runtime.live.watch import FieldSpec, TypeTree, WatchSpec
from tspec.values import Datum

MoreColumns = Callable[[str, str, Mapping[str, Any]], Mapping[str, Datum]]
"""Reads one field, by kind and name, of some subjects.

Subjects whose field it does not know are left out.
"""


def _itself(thing: Any) -> Any:
    """The object of the script that a subject is."""
    return thing.tensor if thing.__class__ is NamedParameter else thing


def _size(state: Any) -> int:
    """The number of parameters for which an optimizer holds state."""
    return len(state) if isinstance(state, Mapping) else 0


def _states_held(state: Any) -> int | None:
    """As `_size`; None of an optimizer that keeps its state elsewhere."""
    return len(state) if isinstance(state, Mapping) else None


def _held(param_groups: Any) -> int:
    """A number that changes when an optimizer gets, loses or exchanges parameters."""
    groups = param_groups if isinstance(param_groups, list) else []
    return sum(_identity(group.get("params")) for group in groups if isinstance(group, Mapping))


def _identity(parameters: Any) -> int:
    """A hash of the ids: exchanged parameters may have ids of the same sum."""
    return hash(tuple(map(id, parameters))) if isinstance(parameters, list | tuple) else 0


class SubjectRegistry:
    """The subjects of a job, by kind. It is the `Namer` of all values that are read."""

    def __init__(
        self,
        spec: WatchSpec,
        ranks: RankTopology,
        unread: Callable[[str, str, str], None],
        features: ReadFeatures,
        before_update: Callable[[], bool],
    ) -> None:
        """`unread` is called with kind, field and reason where a field of a subject cannot be read."""
        self._before_update = before_update
        self.ranks = ranks
        self._unread = unread
        self._living: frozenset[int] = frozenset()
        self.models = ModelRegistry()
        self.optimizers = OptimizerSubjects(self.models)
        self.schedulers = SchedulerSubjects(self.optimizers)
        self.loaders = LoaderSubjects()
        self.batches = BatchSubjects()
        self.scalers = ScalerSubjects()
        self.wrappers = WrapperSubjects(self.models, ranks)
        self.stages = PipelineStages(self.models, ranks)
        self.messages = MessageSubjects()
        self.receive_buffers = ReceiveBuffers()
        self.pending = PendingCalls()
        self.tokens = TokenHistory(self._training)
        self.loose = LooseParameters(self._is_held, self.models.is_attribute)
        self.updates = UpdateHistory(self.models, self.optimizers, ranks, features)
        self.leaks = LeakedTargets()
        self.noised = NoisedInputs()
        self.mixed = MixedSamples()
        self.evaluations = HeldOutEvaluations()
        self.repeated = RepeatedEvaluations()
        self.checkpoints = LoadedCheckpoints()
        self.stored = StoredTensors()
        self.left_out = LeftOutParameters()
        self.generators = GeneratorSubjects()
        self.more_columns: list[MoreColumns] = []
        """Column readers of adapters, for fields of their framework."""
        self.functions = self._field_functions()
        parameters = ParameterSubjects(
            self.models,
            self.optimizers,
            self.wrappers,
            self.stages,
            self.updates.columns,
            self.more_columns,
        )
        modules = ModuleSubjects(self.models, self.updates.copied.alive)
        self.copies_of = parameters.copies_of
        self.copies_anywhere = parameters.copies_anywhere
        self._columns: Mapping[str, ColumnReader] = {"parameter": parameters, "module": modules}
        states = OptimizerStateSubjects(self.models, self.optimizers)
        self._names: Mapping[str, Callable[[], tuple[str, ...]]] = {"state": states.names}
        """Kinds whose names are known at less cost than their objects."""
        self._kinds = self._subject_kinds(parameters, modules, states)
        self._fields: dict[tuple[str, str], FieldSpec] = {
            (entity.kind, field.name): field for entity in spec.entities for field in entity.fields
        }
        self._computing: dict[tuple[str, str], Evaluator] = {
            place: compiled(field.source, itemgetter)
            for place, field in self._fields.items()
            if field.source is not None
        }
        """The fields that the vocabulary computes from the object."""

    def _subject_kinds(
        self, parameters: ParameterSubjects, modules: ModuleSubjects, states: OptimizerStateSubjects
    ) -> Mapping[str, SubjectKind]:
        """The registry of the subjects of each kind, by the kind's name."""
        return {
            "parameter": parameters,
            "buffer": BufferSubjects(self.models),
            "state": states,
            "module": modules,
            "optimizer": self.optimizers,
            "param_group": ParamGroupSubjects(self.optimizers),
            "scheduler": self.schedulers,
            "loader": self.loaders,
            "batch": self.batches,
            "scaler": self.scalers,
            "generator": self.generators,
            "wrapper": self.wrappers,
            "message": self.messages,
        }

    def _field_functions(self) -> Mapping[str, Callable[..., Any]]:
        """The functions that the declaration of a field may call, by name."""
        return {
            **FUNCTIONS,
            **loss_functions(self.tokens, self._before_update, TrainingSampling(self._training)),
            "models_of": lambda saved: [each.model for each in self._saved(saved)],
            "missing_keys": lambda saved: self.stored.missing_keys(self._saved(saved)),
            "for_parameters": self._for_parameters,
            "used_early": self.pending.used_early,
            "overwrites_input": self.receive_buffers.overwrites_input,
            "before_update": self._before_update,
            "elements": lambda value: sum(each.numel() for each in tensors_in(value, VISITED)),
            "placements": placements,
            "loose_parameters": self.loose.loose_parameters,
            "is_own_state": is_own_state,
            "not_loaded": not_loaded,
            "values_left_out": self.left_out.values_left_out,
            "lost_updates": self.checkpoints.lost_updates,
            "written_to": written_to,
            "restarted": lambda saved, file: self.checkpoints.restarted(
                saved, file, self._sampler_epochs()
            ),
            "goes_on_from": self.checkpoints.files.goes_on_from,
            **self.updates.functions,
            "states_held": lambda optimizer: _states_held(asked(optimizer, "state")),
            "states_left": lambda optimizer, result: _states_held(asked(optimizer, "state")),
            "preserves_rng": lambda options: bool(options.get("preserve_rng_state", True)),
            "steps_left": steps_left,
            "resumed_updates": self.schedulers.resumed_updates,
            "idle_part": ScheduleProgress().idle_part,
            "highest_factor": ScheduleFactors().highest_factor,
            "steps_made": steps_made,
            "differentiates_inputs": differentiates_inputs,
            "data_differ": DataOfLayers().data_differ,
            "first_row_alone": LookedUpPlaces().first_row_alone,
            "mode_is_given": WrittenModes().mode_is_given,
            "answers_as_in_training": HeldOutSamples(
                self.models.is_given_data
            ).answers_as_in_training,
            "repeated_places": repeated_places,
            "passes_unused": UnusedExperts().passes_unused,
            "sorted_splits": sorted_splits,
            "held_out_evaluations": self._held_out_evaluations,
            "leaked_targets": self.leaks.leaked_targets,
            "lacks_noise": self.noised.lacks_noise,
            "mixes_labels_otherwise": self.mixed.mixes_labels_otherwise,
            "enlarges_inputs": EnlargedInputs().enlarges_inputs,
            "new_labels": NewLabels().new_labels,
            "viewed_as_channels_first": ViewedImages().viewed_as_channels_first,
            "scale_of_inputs": InputScales(self.models.is_given_data).scale_of_inputs,
            "begins_with_last_state": TrainingSampling(self._training).of_first(
                STATES, CarriedStates().begins_with_last_state
            ),
            "known_samples": KnownSamples(self.models.is_root).known_samples,
        }

    def _training(self) -> int:
        """The number of the training that is under way, from 1 on: each optimizer but the first begins another one."""
        return min(max(self.optimizers.numbered.count, 1), MOST_TRAININGS)

    def _held_out_evaluations(self, module: nn.Module) -> int:
        """In how many evaluations a model was given held-out batches, or the same samples in each."""
        held_out = self.evaluations.held_out_evaluations(module)
        return max(held_out, self.repeated.evaluations(module))

    @property
    def version(self) -> tuple[int, ...]:
        """Differs when something was built, found or replaced, process groups too.

        So the fields of `BUILT` are the same as long as it is.
        """
        counted = (self.optimizers, self.schedulers, self.loaders, self.wrappers, self.stages)
        return (
            self.models.version,
            len(self.ranks.meshes),
            self.ranks.process_groups,
            *(each.numbered.count for each in counted),
            *(_size(asked(each, "state")) for each in self.optimizers.things().values()),
            *(_held(asked(each, "param_groups")) for each in self.optimizers.things().values()),
        )

    def subjects(self, kind: str) -> Sequence[str]:
        """Canonical names of all subjects of a kind."""
        if kind in self._names:
            return self._names[kind]()
        held = self._kinds.get(kind)
        return () if held is None else tuple(held.things())

    def fields(self, kind: str, name: str) -> dict[str, Datum]:
        """One field of all subjects of a kind."""
        held = self._kinds.get(kind)
        if held is None:
            return {}
        things = held.things()
        try:
            return self._column(held, kind, name, things)
        except Exception:  # an object of the user's may raise anything: it costs only its own field
            return {s: self._alone(held, kind, name, {s: thing})[s] for s, thing in things.items()}

    def _column(
        self, held: SubjectKind, kind: str, name: str, things: Mapping[str, Any]
    ) -> dict[str, Datum]:
        """One field of some subjects of a kind. Raises what their objects raise."""
        spec = self._fields.get((kind, name))
        if spec is not None and spec.source is not None:
            value = self._computing[kind, name]
            return {s: self._computed(value, spec.type, thing) for s, thing in things.items()}
        column = None
        if kind in self._columns:
            column = self._columns[kind].column(name, things)
        if column is None:
            read = held.field
            column = {s: read(name, s, thing) for s, thing in things.items()}
        found = column
        for more in self.more_columns:
            if any(map(is_, found.values(), repeat(UNKNOWN))):
                said = more(kind, name, things)
                found = {s: said.get(s, v) if v is UNKNOWN else v for s, v in found.items()}
        if any(map(is_, found.values(), repeat(UNKNOWN))):
            type_ = ("scalar",) if spec is None else spec.type
            for s, thing in things.items():
                if found[s] is UNKNOWN:
                    found[s] = self._attribute(name, type_, thing)
        return found

    def _alone(
        self, held: SubjectKind, kind: str, name: str, things: Mapping[str, Any]
    ) -> dict[str, Datum]:
        """One field of one subject, not recorded if its object raises."""
        try:
            return self._column(held, kind, name, things)
        except Exception as why:
            self._unread(kind, name, f"{type(why).__name__}: {why}")
            return dict.fromkeys(things, Missing.NOT_RECORDED)

    def _computed(self, value: Evaluator, type_: TypeTree, thing: Any) -> Datum:
        """A field that the vocabulary computes from the object."""
        try:
            return convert(value({"self": _itself(thing)}, self.functions), type_, self)
        except (ExpressionError, KeyError):
            return Missing.NOT_RECORDED

    def _attribute(self, name: str, type_: TypeTree, thing: Any) -> Datum:
        """A field that is an attribute of the object."""
        plain = getattr(_itself(thing), name, UNKNOWN)
        return Missing.ABSENT if plain is UNKNOWN else convert(plain, type_, self)

    def reference(self, kind: str, thing: Any) -> Ref | None:
        """The subject that an object is."""
        held = self._kinds.get(kind)
        name = None if held is None else held.name_of(thing)
        return None if name is None else Ref(kind, name)

    def ranks_of(self, group: Any) -> tuple[int, ...] | None:
        """The ranks of a process group."""
        return self.ranks.of_group(group)

    def tensor_name(self, tensor: torch.Tensor) -> Datum:
        """The canonical name of a parameter, its gradient, or a buffer; absent for other tensors."""
        name = self.models.name_of_parameter(tensor) or self.models.tables.buffer_by_id.get(
            id(tensor)
        )
        if name is None:
            name = next(
                (n for n, p in self.models.parameters().items() if p.tensor.grad is tensor), None
            )
        return Missing.ABSENT if name is None else name

    def step_opens(self) -> None:
        """A step opens: batches of the last one are gone, layers may have been replaced."""
        self.ranks.step_opens()
        self.batches.step_opens()
        self.messages.step_opens()
        self.wrappers.step_opens()
        self.models.refresh()
        self.find_models()
        self.models.training_begins(self._trained())

    def living_optimizers(self) -> frozenset[int]:
        """Numbers of the optimizers that exist. If one was freed, the roots are read anew, so that
        its model may be freed too.
        """
        living = self.optimizers.numbers()
        if not self._living <= living:
            self.models.refresh()
            self.updates.forget(self._living - living)
            self.optimizers.forget(self._living - living)
        self._living = living
        return living

    def keep(self, thing: Any) -> None:
        """An optimizer or a schedule that was about to be freed lives on."""
        if isinstance(thing, Optimizer):
            self.optimizers.revive(thing)
        else:
            self.schedulers.numbered.revive(thing)

    def _sampler_epochs(self) -> list[int]:
        """The epochs set on the samplers of the loaders that are trained on now."""
        epochs = [
            asked(asked(each, "sampler"), "epoch")
            for each in self.loaders.alive().values()
            if self.loaders.numbered.number(each) in self.loaders.trained_on_now
        ]
        return [each for each in epochs if type(each) is int]

    def find_models(self) -> None:
        """Find the models whose parameters optimizers hold, also before they are called."""
        for tensor in self._trained():
            self.models.holding(tensor)

    def _trained(self) -> list[torch.Tensor]:
        """The parameters that optimizers hold, in the optimizers' order."""
        return [held for each in self.optimizers.things().values() for held in held_by(each)]

    def _is_held(self, tensor: torch.Tensor) -> bool:
        """True if a model or an optimizer holds the tensor.

        Layers of a sharded model compute with tensors that the model does not hold, and models of
        flattened parameters hold views.
        """
        if self.models.is_registered(tensor) or is_flattened(tensor):
            return True
        if any(each is tensor or local(each) is not each for each in self._trained()):
            return True
        parameters = (each for root in self._roots() for each in root.parameters())
        return any(local(each) is not each for each in parameters)

    def _saved(self, saved: Any) -> list[SavedModel]:
        """The parts of a saved object that belong to root models."""
        return saved_models(saved, self._roots())

    def _roots(self) -> list[nn.Module]:
        """The root models that exist."""
        modules = (root.module() for root in self.models.roots)
        return [module for module in modules if module is not None]

    def _for_parameters(
        self, module: nn.Module, loaded: Mapping[str, Any]
    ) -> dict[str, torch.Tensor]:
        """The tensors of a state dict of `module`, by the canonical names of its parameters."""
        found = {}
        for key, parameter in nn.Module.named_parameters(module, remove_duplicate=False):
            name = self.models.name_of_parameter(parameter)
            if name is not None and isinstance(loaded.get(key), torch.Tensor):
                found[name] = loaded[key]
        return found
