"""Where generated values come from: one small interface over Hypothesis draws and over `random.Random`.

The generators of this package ask a `Source` for numbers, choices and texts. Under Hypothesis every request is a draw,
so failing examples shrink; over `RandomSource` the same generators run without Hypothesis, from a seed.
Requests are made so that their smallest answer (zero, the first choice, the empty text) is the simplest value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import gcd
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from agjson.errors import MissingExtraError
from agjson.types import JsonValue

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["HypothesisSource", "RandomSource", "Source"]

T = TypeVar("T")

# One sample per plane and per encoding length, controls, line separators, combining marks and a ZWJ sequence.
_SAMPLES = (
    "az09 _-./~%'\\\n\t\x00\x1f\x7f\x85\xe9\u07ff\u0800\u2028\u2029\ufeff\ufffd"
    "\U00010000\U0001f600\U0001f469\u200d\U0001f4bb\U0002000b\U0010ffff"
    '"'
)
_SURROGATES = "\ud800\udbff\udc00\udfff"


class Source(ABC):
    """Answers the requests of the generators.

    Args:
        surrogates: whether texts may hold lone UTF-16 surrogates, which JSON can only write escaped.
    """

    def __init__(self, *, surrogates: bool = False) -> None:
        self.surrogates = surrogates

    @abstractmethod
    def integer(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, both included; the smallest answer is ``low``."""

    @abstractmethod
    def text(self, min_size: int = 0, max_size: int = 8) -> str:
        """A text of ``min_size`` to ``max_size`` code points from all planes."""

    @abstractmethod
    def number(self) -> int | float:
        """A finite JSON number: small and very large integers, and floats."""

    def chance(self, percent: int) -> bool:
        """True in about ``percent`` of a hundred cases; the smallest answer is False."""
        # In lowest terms, since a small range takes fewer attempts to shrink.
        common = gcd(percent, 100)
        return self.integer(0, 100 // common - 1) >= (100 - percent) // common

    def group(self, make: Callable[[], T]) -> T:
        """What ``make`` returns; whatever it asks for shrinks as one, to the smallest answers all at once."""
        return make()

    def choice(self, options: Sequence[T]) -> T:
        """One of ``options``, which must not be empty; the smallest answer is the first."""
        return options[self.integer(0, len(options) - 1)] if len(options) > 1 else options[0]

    def json(self, depth: int = 2) -> JsonValue:
        """Any JSON value (spec §0.1), nested at most ``depth`` levels."""
        kind = self.integer(0, 6 if depth > 0 else 4)
        if kind == 0:
            return None
        if kind == 1:
            return self.text()
        if kind == 2:
            return self.number()
        if kind == 3:
            return self.integer(0, 1) == 1
        if kind == 4:
            return self.integer(0, 9)
        if kind == 5:
            return [self.json(depth - 1) for _ in range(self.integer(0, 3))]
        return self.json_object(depth)

    def json_object(self, depth: int = 2) -> dict[str, JsonValue]:
        """A JSON object of up to three members, nested at most ``depth`` levels."""
        return {self.text(0, 6): self.json(depth - 1) for _ in range(self.integer(0, 3))}


class RandomSource(Source):
    """A `Source` over `random.Random`: the generators without Hypothesis, reproducible by the seed.

    Args:
        random: the generator to use, or a seed for a new one.
        surrogates: whether texts may hold lone surrogates.
    """

    def __init__(self, random: Random | int, *, surrogates: bool = False) -> None:
        super().__init__(surrogates=surrogates)
        self._random = Random(random) if isinstance(random, int) else random
        self._alphabet = _SAMPLES + _SURROGATES if surrogates else _SAMPLES

    def integer(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, both included."""
        return self._random.randint(low, high)

    def text(self, min_size: int = 0, max_size: int = 8) -> str:
        """A text of ``min_size`` to ``max_size`` code points."""
        size = self._random.randint(min_size, max_size)
        return "".join(self._random.choice(self._alphabet) for _ in range(size))

    def number(self) -> int | float:
        """A finite JSON number."""
        kind = self._random.randrange(4)
        if kind == 0:
            return self._random.randint(-(2**70), 2**70)
        if kind == 1:
            return self._random.uniform(-1e6, 1e6)
        if kind == 2:
            return self._random.choice([5e-324, 1.7976931348623157e308, 1e22, 0.1, -0.5])
        return self._random.randint(-1000, 1000)


class HypothesisSource(Source):
    """A `Source` over the ``draw`` function of a Hypothesis composite strategy.

    Args:
        draw: the ``draw`` argument of a function under ``hypothesis.strategies.composite``, or ``data.draw``.
        surrogates: whether texts may hold lone surrogates.

    Raises:
        MissingExtraError: Hypothesis is not installed.
    """

    def __init__(self, draw: Callable[[SearchStrategy[Any]], Any], *, surrogates: bool = False) -> None:
        super().__init__(surrogates=surrogates)
        self._draw = draw
        self._number = _number_strategy()
        self._waiting: Callable[[], Any] | None = None
        # One strategy for all groups: making one for each would cost more than the draws in it.
        self._group = _grouping()(self)

    def integer(self, low: int, high: int) -> int:
        """An integer from ``low`` to ``high``, both included; shrinks to ``low``."""
        result: int = self._draw(_integer_strategy(low, high))
        return result

    def group(self, make: Callable[[], T]) -> T:
        """What ``make`` returns, as one strategy inside the one that draws."""
        self._waiting = make
        result: T = self._draw(self._group)
        return result

    def make_waiting(self, draw: Callable[[SearchStrategy[Any]], Any]) -> Any:
        """Call what `group` was given, with ``draw`` as the source of its draws; for the group's strategy alone."""
        make, self._waiting = self._waiting, None
        outer, self._draw = self._draw, draw
        try:
            return make() if make is not None else None
        finally:
            self._draw = outer

    def text(self, min_size: int = 0, max_size: int = 8) -> str:
        """A text of ``min_size`` to ``max_size`` code points from all planes."""
        result: str = self._draw(text_strategy(min_size, max_size, self.surrogates))
        return result

    def number(self) -> int | float:
        """A finite JSON number."""
        result: int | float = self._draw(self._number)
        return result


@lru_cache(maxsize=1)
def _grouping() -> Callable[[HypothesisSource], SearchStrategy[Any]]:
    from hypothesis import strategies as st

    def draw_group(draw: Callable[[SearchStrategy[Any]], Any], source: HypothesisSource) -> Any:
        return source.make_waiting(draw)

    return st.composite(draw_group)


@lru_cache(maxsize=1024)
def _integer_strategy(low: int, high: int) -> SearchStrategy[int]:
    from hypothesis import strategies as st

    return st.integers(low, high)


@lru_cache(maxsize=256)
def text_strategy(min_size: int, max_size: int | None, surrogates: bool) -> SearchStrategy[str]:
    """A cached Hypothesis strategy for texts; lone surrogates only when asked for."""
    from hypothesis import strategies as st

    if not surrogates:
        return st.text(st.characters(exclude_categories=["Cs"]), min_size=min_size, max_size=max_size)
    # Among all characters the halves would hardly ever come.
    return st.text(st.characters() | st.sampled_from(_SURROGATES), min_size=min_size, max_size=max_size)


@lru_cache(maxsize=1)
def _number_strategy() -> SearchStrategy[int | float]:
    try:
        from hypothesis import strategies as st
    except ImportError as error:
        raise MissingExtraError("testing", "hypothesis") from error
    big = st.integers(-(2**80), 2**80)
    return st.one_of(st.integers(-1000, 1000), big, st.floats(allow_nan=False, allow_infinity=False))
