"""What a provider may send: a call that breaks off, errors of its client, a stream that is cut."""

from collections.abc import Callable

from agent_core.runs.models import Run
from agent_core.runs.states import RunState
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]


class ProviderError(Exception):
    """Stands for an error of a provider's client, which carries the HTTP status."""

    def __init__(self, status: int | None) -> None:
        super().__init__("https://inner.example/v1 said key sk-live-123")
        self.status_code = status


def test_a_call_that_breaks_off_is_asked_for_again_and_never_completed_by_guessing(
    script: Play, say: Say, effects: list[str]
) -> None:
    script([("probe_pay", '{"amount": "50')], [("probe_pay", {"amount": "500"})])

    run = say("pay 500")

    assert effects == ["pay 500"]
    assert run.stop.model_calls_made == 2


def test_an_error_of_the_providers_client_fails_the_run_in_plain_words(
    script: Play, say: Say
) -> None:
    for status, words in (
        (429, "is not answering just now"),
        (503, "is not answering just now"),
        (None, "is not answering just now"),
        (401, "gave no usable answer"),
        (413, "gave no usable answer"),
    ):
        script(ProviderError(status))
        run = say("hello")
        assert run.state == RunState.FAILED
        said = run.answers.get().text
        assert words in said, status
        assert run.failure_reference in said
        for inner in ("inner.example", "sk-live", "ProviderError", str(status)):
            assert inner not in said
