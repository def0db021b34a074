"""What a rule of the contract is, and how the modules that hold rules make theirs."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agjson.testing.contract.subject import NotApplicable, Sample, Subject

__all__ = ["Rule", "expect", "placed", "rule", "samples_for"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the adapter contract: ``rule(subject)`` raises if the subject breaks it.

    Attributes:
        name: the rule's name, which ``str(rule)`` gives.
        section: the sections of the specification that it comes from.
        description: what has to hold, in one sentence.
    """

    name: str
    section: str
    description: str
    _check: Callable[[Subject], None] = field(repr=False)

    def __call__(self, subject: Subject) -> None:
        """Try the rule on an adapter.

        Args:
            subject: the adapter.

        Raises:
            AssertionError: the adapter breaks the rule; the message names the sample, the place and what was found.
                Whatever else is raised on the way becomes one too.
            NotApplicable: the subject lacks what the rule is tried on.
        """
        try:
            self._check(subject)
        except AssertionError as error:
            raise AssertionError(f"{subject.name}: {self.name}: {error}") from error.__cause__
        except NotApplicable as error:
            raise NotApplicable(f"{subject.name}: {self.name}: {error}") from None
        except Exception as error:
            message = f"{subject.name}: {self.name}: {type(error).__name__}: {error}"
            raise AssertionError(message) from error

    def __str__(self) -> str:
        return self.name


def rule(name: str, section: str) -> Callable[[Callable[[Subject], None]], Rule]:
    """Make a function a rule; the first paragraph of its docstring is the description."""

    def make(check: Callable[[Subject], None]) -> Rule:
        first = (check.__doc__ or "").strip().split("\n\n")[0]
        return Rule(name, section, " ".join(first.split()), check)

    return make


@contextmanager
def placed(where: str) -> Generator[None]:
    """Let what is raised inside say where: a rule runs thousands of streams.

    Args:
        where: the sample and what was done to it.

    Raises:
        AssertionError: something was raised that is neither that nor a `NotApplicable`.
    """
    try:
        yield
    except (AssertionError, NotApplicable):
        raise
    except Exception as error:
        raise AssertionError(f"{where}: {type(error).__name__}: {error}") from error


def expect(condition: object, message: str) -> None:
    """Raise an AssertionError with the message unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def samples_for(subject: Subject, test: Callable[[Sample], object], lack: str) -> list[Sample]:
    """The samples that a rule can use.

    Raises:
        NotApplicable: there is none; the message is `lack`.
    """
    found = [sample for sample in subject.samples if test(sample)]
    if not found:
        raise NotApplicable(lack)
    return found
