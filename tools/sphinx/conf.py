"""Settings of Sphinx for the site; ``tools/build_site.py`` writes the pages that it reads."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import logreel
import logreel.plugin

# The format adds it as an attribute; autodoc imports modules.
sys.modules["logreel.carla"] = logreel.carla

HERE = Path(__file__).parent
#: A line of an aligned list in a docstring: names, two spaces or more, what they mean.
ENTRY = re.compile(r"(?P<names>\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*) {2,}(?P<text>\S.*)")
#: Nodes of a Layout whose names are those of types in most modules: Sphinx takes a name for the only class with it.
AMBIGUOUS = {"Sequence": logreel.plugin.Sequence, "Time": logreel.plugin.Time}

project = "logreel"
author = "the authors of logreel"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = ["conf.py"]
myst_heading_anchors = 6
myst_enable_extensions = ["deflist"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_maximum_signature_line_length = 88
add_module_names = False
# Options begin with two dashes, and examples have the quotes that a shell takes.
smartquotes = False
# The commands of an example, without its prompts and what it prints.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_static_path = [str(HERE / "static")]
templates_path = [str(HERE / "templates")]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
html_favicon = str(HERE.parents[1] / "src/logreel/outputs/view/static/icon.svg")
html_copy_source = False
# Would be requested page by page, which browsers refuse where the site is opened as files.
html_show_search_summary = False
html_show_copyright = False
# Nothing of these is elsewhere: system fonts, and pictures that are part of the pages.
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6b5d", "color-brand-content": "#0b6b5d"},
    "dark_css_variables": {"color-brand-primary": "#5fd3bf", "color-brand-content": "#5fd3bf"},
}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}


def lists(lines: list[str]) -> list[str]:
    """Return a docstring with its aligned lists as definition lists of reStructuredText."""
    out: list[str] = []
    inside = False
    for number, line in enumerate(lines):
        entry = ENTRY.fullmatch(line)
        if entry and (inside or number == 0 or not lines[number - 1].strip()):
            inside = True
            names = ", ".join(f"``{name}``" for name in entry["names"].split(", "))
            out += ["", names, f"    {entry['text']}"]
        elif inside and line[:2] == "  " and line.strip():
            out.append(f"    {line.strip()}")
        else:
            out += [""] * (inside and bool(line.strip()))
            inside = False
            out.append(line)
    return out


def lay_out(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place, as Sphinx wants it."""
    lines[:] = lists(lines)


def unlink(app: Any, doctree: Any) -> None:
    """Take the links from ambiguous names in signatures, except where the module of the signature means the node."""
    from sphinx.addnodes import desc_signature, pending_xref

    for signature in doctree.findall(desc_signature):
        owner = getattr(sys.modules[signature["module"]], signature["fullname"].partition(".")[0], None)
        names = vars(sys.modules[owner.__module__]) if hasattr(owner, "__module__") else {}
        for link in list(signature.findall(pending_xref)):
            name = link["reftarget"]
            if name in AMBIGUOUS and names.get(name) is not AMBIGUOUS[name]:
                link.replace_self(link.children)


def setup(app: Any) -> None:
    """Connect what this file adds to Sphinx."""
    app.connect("autodoc-process-docstring", lay_out)
    app.connect("doctree-read", unlink)
