"""The normative fold: a stream of events to the conversation (spec §5)."""

from agjson.fold._resync import snapshot
from agjson.fold._state import FoldViolation
from agjson.fold.reducer import Reducer, Reduction, reduce

__all__ = ["FoldViolation", "Reducer", "Reduction", "reduce", "snapshot"]
