"""How objects show themselves in a notebook: facts, escaped, in the colours of the page around them."""
from __future__ import annotations

import html
from typing import Iterable, Sequence, Tuple

_STYLE = ("<style>.opscope-facts{border-collapse:collapse}.opscope-facts td,.opscope-facts th{text-align:left;vertical-align:top;padding:.15rem .9rem .15rem 0}"
          ".opscope-facts th{font-weight:400;opacity:.7}.opscope-bar{display:flex;height:.8rem;max-width:44rem;margin:.3rem 0}.opscope-bar span{display:block}"
          ".opscope-key{font-size:.9em}.opscope-key i{display:inline-block;width:.7em;height:.7em;margin:0 .3em 0 .8em}</style>")

# Okabe and Ito's, as the viewer has them.
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#9a8c00", "#7f7f7f", "#5b3fa0", "#8c564b")


def escape(text: str) -> str:
    """Characters that cannot be seen, as those that turn the direction of text, become U+FFFD."""
    return html.escape("".join(c if c.isprintable() else "\ufffd" for c in text))


def facts(heading: str, rows: Iterable[Tuple[str, str]], *more: str) -> str:
    """heading and rows are plain text; more is HTML."""
    body = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    return f'<div class="opscope">{_STYLE}<b>{escape(heading)}</b><table class="opscope-facts">{body}</table>{"".join(more)}</div>'


def bar(shares: Sequence[Tuple[str, float]]) -> str:
    """Percents of a whole, beside each other; their names below."""
    shown = [(name, share, _COLORS[i % len(_COLORS)]) for i, (name, share) in enumerate(shares) if share > 0]
    parts = "".join(f'<span style="width:{share:.3f}%;background:{color}" title="{escape(name)}: {share:.2f} %"></span>' for name, share, color in shown)
    key = "".join(f'<i style="background:{color}"></i>{escape(name)} {share:.1f} %' for name, share, color in shown)
    return f'<div class="opscope-bar">{parts}</div><div class="opscope-key">{key}</div>'


def hint(text: str) -> str:
    """Where to go on; words in backticks are code."""
    parts = text.split("`")
    return "<p style=\"opacity:.7;margin:.3rem 0\">" + "".join(f"<code>{escape(p)}</code>" if i % 2 else escape(p) for i, p in enumerate(parts)) + "</p>"
