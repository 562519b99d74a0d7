from __future__ import annotations

import sys
from importlib import util
from pathlib import Path

import pytest

from retain import InvalidValue, NotFound, StoreFailed
from retain.evaluation import Outcome, Report, plot_recall
from retain.evaluation.plot import check_plot


def report(configuration="default", **changes):
    outcomes = [Outcome("q1", "a", 1, (3,), 0.1), Outcome("q2", "a", 2, (1, 30), 0.1)]
    fields = {"format": "plain", "unit": "turn", "part": "", "depth": 50, "memories": 9}
    return Report(
        **{
            "dataset": "données 日本.json",
            "digest": "0123456789abcdef" * 4,
            "configuration": configuration,
            "left_out": {},
            "outcomes": outcomes,
            **fields,
            **changes,
        }
    )


needs_matplotlib = pytest.mark.skipif(
    util.find_spec("matplotlib") is None, reason="matplotlib is not installed"
)


@pytest.fixture
def drawn(monkeypatch, tmp_path_factory):
    """A home for matplotlib's cache, and the figure that was drawn last."""
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path_factory.getbasetemp() / "matplotlib"))
    from matplotlib.figure import Figure

    figures = []
    save = Figure.savefig

    def savefig(figure, *args, **options):
        figures.append(figure)
        save(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return figures


@needs_matplotlib
def test_the_curves_of_several_configurations_are_drawn(drawn, tmp_path: Path):
    path = tmp_path / "curve.png"
    plot_recall([report(), report("costs $5 or $6"), report("third_one")], path)
    assert path.read_bytes().startswith(b"\x89PNG")
    (axes,) = drawn[0].axes
    assert "données 日本.json (sha256 0123456789ab)" in axes.get_title()
    assert "n = 2 questions" in axes.get_title()
    assert [line.get_ydata()[9] for line in axes.lines] == [0.75] * 3
    assert list(axes.lines[0].get_xdata()) == list(range(1, 51))
    assert [line.get_ydata()[49] for line in axes.lines] == [1.0] * 3
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [
        "default: 0.750 at 10",
        r"costs \$5 or \$6: 0.750 at 10",
        "third_one: 0.750 at 10",
    ]
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    assert list(tmp_path.iterdir()) == [path]


@needs_matplotlib
@pytest.mark.parametrize(("name", "start"), [("c.svg", b"<?xml"), ("c.PDF", b"%PDF")])
def test_the_name_says_the_kind_of_picture(tmp_path: Path, name: str, start: bytes):
    (tmp_path / name).write_text("old")
    plot_recall([report(depth=5)], tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)


@needs_matplotlib
def test_a_place_that_cannot_be_is_refused_before_the_measurement(tmp_path: Path):
    with pytest.raises(InvalidValue, match=r"ends in none of \.png"):
        check_plot(tmp_path / "curve.txt")
    with pytest.raises(NotFound, match="there is no folder"):
        check_plot(tmp_path / "nowhere" / "curve.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(StoreFailed):
        plot_recall([report()], tmp_path / "folder.png")


def test_without_matplotlib_the_error_says_how_to_get_it(monkeypatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InvalidValue, match="pip install 'matplotlib>="):
        plot_recall([report()], tmp_path / "curve.png")
    assert not list(tmp_path.iterdir())
