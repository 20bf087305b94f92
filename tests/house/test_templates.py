"""No page carries code of its own: the content policy blocks it, and no template asks for it."""

import pytest

from tests.house.markup import unsafe_markup
from tests.house.tree import named, templates

CAUGHT = [
    "{{ ticket.body|safe }}",
    "{{ rows | safeseq }}",
    "{% autoescape off %}{{ x }}{% endautoescape %}",
    '<button class="b" onclick="go()">',
    "<svg onload=go()>",
    '<p style="color: red">',
    "<style>p { color: red }</style>",
    "<script>go()</script>",
    '<script type="module">go()</script>',
    '<script src="https://cdn.example/x.js"></script>',
    '<link rel="stylesheet" href="//cdn.example/x.css">',
    '<a href="javascript:go()">',
]
PASSED = [
    '<script type="module" src="{% static \'js/chat.js\' %}"></script>',
    '<button class="button" data-action="{{ url }}">Approve</button>',
    "{{ payment.reference }}",
    "<a href=\"{% url 'desk:review' review.pk %}\">Open</a>",
    '<p class="on" title="Only once = once">',
]


@pytest.mark.parametrize("source", CAUGHT)
def test_the_rule_catches_markup_that_runs_or_is_not_escaped(source: str) -> None:
    assert unsafe_markup(f"<main>\n{source}\n</main>")[0].startswith("2: ")


@pytest.mark.parametrize("source", PASSED)
def test_the_rule_lets_ordinary_markup_pass(source: str) -> None:
    assert unsafe_markup(source) == []


def test_no_template_holds_code_or_unescaped_text() -> None:
    found = list(templates())
    assert len(found) > 20
    broken = [
        f"{named(path)}:{problem}"
        for path in found
        for problem in unsafe_markup(path.read_text(encoding="utf-8"))
    ]
    assert broken == []
