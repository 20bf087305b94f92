"""One good call of the search of the help articles, and its other outcomes."""

from typing import Final

from tests.conformance.breaking import table_gone
from tests.conformance.samples import Forced, ToolSample

SAMPLES: Final = {
    "articles_search": ToolSample(
        words=("how long does a refund take?",),
        arguments={"question": "refund times"},
        outcomes={
            "completed": {
                "as-asked": Forced(code="articles.found"),
                "nothing-found": Forced(
                    code="articles.none", arguments={"question": "quantum flux capacitors"}
                ),
            },
            "transient": {
                "no-question": Forced(code="articles.invalid", arguments={"question": " "}),
                "index-gone": Forced(
                    code="articles.unavailable", before=table_gone("knowledge_article")
                ),
            },
        },
        never={
            "fatal": "It changes nothing, so a search that fails may be tried again; a database "
            "that is gone is no outcome, but goes through to the worker."
        },
    ),
}
