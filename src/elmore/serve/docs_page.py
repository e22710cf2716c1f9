"""A plain page about the routes, made from the OpenAPI schema; it loads nothing."""

import json
from html import escape
from typing import Any

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; background: #fff }
pre { background: #f3f3f3; padding: .7rem; overflow-x: auto } code { font-size: .9em }
h2 { border-top: 1px solid #ccc; padding-top: 1rem } td { padding: .1rem 1rem .1rem 0 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1c1c1c }
  pre { background: #2b2b2b } a { color: #8ab4f8 } }
"""


def render_docs(schema: dict[str, Any]) -> str:
    """Return the page as HTML."""
    sections = [
        _render_route(path, method, route)
        for path, methods in schema["paths"].items()
        for method, route in methods.items()
    ]
    info = schema["info"]
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        '<meta name=viewport content="width=device-width">'
        f"<title>{escape(info['title'])} {escape(info['version'])}</title><style>{_STYLE}</style>"
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>"
        '<p>The same as a schema for programs: <a href="openapi.json">openapi.json</a></p>'
        + "".join(sections)
        + "</html>\n"
    )


def _render_route(path: str, method: str, route: dict[str, Any]) -> str:
    text = f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
    text += f"<p>{escape(route.get('description', ''))}</p>"
    body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        required = body.get("required", [])
        rows = "".join(
            f"<tr><td><code>{escape(name)}</code></td><td>{_describe(about, name in required)}</td>"
            for name, about in body["properties"].items()
        )
        text += f"<table>{rows}</table><pre>{escape(_make_example(path, body))}</pre>"
    statuses = ", ".join(
        f"{status} {about['description']}"
        for status, about in route["responses"].items()
        if status != "200"
    )
    return text + (f"<p>Errors: {escape(statuses)}</p>" if statuses else "")


def _describe(about: dict[str, Any], is_required: bool) -> str:
    note = "Required." if is_required else f"Default: {json.dumps(about.get('default'))}."
    return escape(f"{about.get('description', '')} {note}".strip())


def _make_example(path: str, body: dict[str, Any]) -> str:
    values = {
        name: about.get("examples", ["The bank of the river."])[0]
        for name, about in body["properties"].items()
        if name in body.get("required", [])
    }
    return (
        f"curl http://127.0.0.1:8000{path} -H 'content-type: application/json' "
        f"-d '{json.dumps(values)}'"
    )
