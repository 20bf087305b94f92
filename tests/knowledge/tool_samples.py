"""One good call of the search of the help articles."""

from typing import Final

from tests.conformance.samples import ToolSample

SAMPLES: Final = {
    "articles_search": ToolSample(
        words=("how long does a refund take?",), arguments={"question": "refund times"}
    ),
}
