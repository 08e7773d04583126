"""Packages of Word, slides and OpenDocument from the XML that their programs write, without a library between."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

OFFICE = "http://schemas.openxmlformats.org"
NAMESPACES = {
    "w": f"{OFFICE}/wordprocessingml/2006/main",
    "r": f"{OFFICE}/officeDocument/2006/relationships",
    "a": f"{OFFICE}/drawingml/2006/main",
    "p": f"{OFFICE}/presentationml/2006/main",
    "c": f"{OFFICE}/drawingml/2006/chart",
    "dgm": f"{OFFICE}/drawingml/2006/diagram",
    "m": f"{OFFICE}/officeDocument/2006/math",
    "mc": f"{OFFICE}/markup-compatibility/2006",
    "wp": f"{OFFICE}/drawingml/2006/wordprocessingDrawing",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "a14": "http://schemas.microsoft.com/office/drawing/2010/main",
    "v": "urn:schemas-microsoft-com:vml",
}
DECLARED = " ".join(f'xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
RELATED = f'{XML}<Relationships xmlns="{OFFICE}/package/2006/relationships">'


def related(parts: Mapping[str, tuple[str, str]]) -> str:
    """The relationships {id: (kind, target)} of a part."""
    entries = (
        f'<Relationship Id="{id}" Type="{NAMESPACES["r"]}/{kind}" Target="{target}"/>'
        for id, (kind, target) in parts.items()
    )
    return f"{RELATED}{''.join(entries)}</Relationships>"


def package(path: Path, parts: Mapping[str, str]) -> Path:
    """A zip of parts; XML without a declaration gets one, and the namespaces in its first element."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            if not content.startswith("<?xml"):
                head, rest = content.split(">", 1)
                closed = "/" if head.endswith("/") else ""
                content = f"{XML}{head.removesuffix('/')} {DECLARED}{closed}>{rest}"
            made.writestr(name, content)
    return path


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(*runs: str, style: str = "", properties: str = "") -> str:
    """A paragraph of runs; those that are no XML become one."""
    inner = "".join(part if part.startswith("<") else run(part) for part in runs)
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{styled}{properties}</w:pPr>{inner}</w:p>"


STYLES = (
    '<w:styles><w:style w:styleId="Title"><w:name w:val="Title"/></w:style>'
    '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style>'
    '<w:style w:styleId="Kapitel"><w:name w:val="Kapitel"/><w:basedOn w:val="berschrift1"/></w:style>'
    '<w:style w:styleId="Unseen"><w:name w:val="Unseen"/><w:rPr><w:vanish/></w:rPr></w:style>'
    '<w:style w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style></w:styles>'
)


def word(path: Path, body: str, **parts: str) -> Path:
    """A Word file without core properties. ``parts`` are others beside the main one, by their kind of relationship."""
    others = {"styles": STYLES, **parts}
    links = {f"rId{n}": (kind.rstrip("0123456789"), f"{kind}.xml") for n, kind in enumerate(others, start=1)}
    return package(
        path,
        {
            "_rels/.rels": related({"rId1": ("officeDocument", "word/document.xml")}),
            "word/document.xml": f"<w:document><w:body>{body}<w:sectPr/></w:body></w:document>",
            "word/_rels/document.xml.rels": related(links),
            **{f"word/{kind}.xml": content for kind, content in others.items()},
        },
    )


def shape(text: str, placeholder: str = "", frame: str = "") -> str:
    """A shape of a slide with text, whose lines are paragraphs; ``frame`` is "x y width height"."""
    mark = f'<p:nvPr><p:ph type="{placeholder}"/></p:nvPr>' if placeholder else "<p:nvPr/>"
    x, y, width, height = frame.split() if frame else [""] * 4
    placed = f'<a:xfrm><a:off x="{x}" y="{y}"/><a:ext cx="{width}" cy="{height}"/></a:xfrm>' if frame else ""
    lines = "".join(
        f"<a:p>{line if line.startswith('<') else f'<a:r><a:t>{line}</a:t></a:r>'}</a:p>" for line in text.split("\n")
    )
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="2" name="x"/><p:cNvSpPr/>{mark}</p:nvSpPr><p:spPr>{placed}</p:spPr>'
        f"<p:txBody><a:bodyPr/>{lines}</p:txBody></p:sp>"
    )


def deck(
    path: Path, *slides: str, notes: Mapping[int, str] | None = None, charts: Mapping[str, str] | None = None
) -> Path:
    """A deck of slides, each the shapes on it; one that begins with "hidden:" is not shown. ``notes`` are by slide,
    ``charts`` by the relationship that every slide has to them."""
    parts = {
        "_rels/.rels": related({"rId1": ("officeDocument", "ppt/presentation.xml")}),
        "ppt/presentation.xml": "<p:presentation><p:sldIdLst>"
        + "".join(f'<p:sldId id="{256 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
        + "</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": related(
            {f"rId{n}": ("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)}
        ),
    }
    for number, shapes in enumerate(slides, start=1):
        show = ' show="0"' if shapes.startswith("hidden:") else ""
        tree = shapes.removeprefix("hidden:")
        parts[f"ppt/slides/slide{number}.xml"] = f"<p:sld{show}><p:cSld><p:spTree>{tree}</p:spTree></p:cSld></p:sld>"
        links = {id: ("chart", f"../charts/chart{id}.xml") for id in charts or ()}
        if noted := (notes or {}).get(number):
            links["rIdN"] = ("notesSlide", f"../notesSlides/notesSlide{number}.xml")
            tree = f"<p:cSld><p:spTree>{noted}</p:spTree></p:cSld>"
            parts[f"ppt/notesSlides/notesSlide{number}.xml"] = f"<p:notes>{tree}</p:notes>"
        parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = related(links)
    return package(path, {**parts, **{f"ppt/charts/chart{id}.xml": chart for id, chart in (charts or {}).items()}})
