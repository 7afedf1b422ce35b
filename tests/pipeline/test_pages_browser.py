"""The pages in a real browser: nothing is fetched, nothing fails, search and zoom work, nothing hostile runs.

Needs Chromium; skipped without it. Screenshots are kept in the folder that PLANEWISE_SCREENSHOTS names, if it is set.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from planewise.pipeline.cli import run
from planewise.pipeline.evidence import build_packets
from planewise.pipeline.pages.run_page import run_page
from support import TinyStore, emptied

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
ROOT = Path(__file__).parents[2]
HOSTILE = (
    "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">\u2028'\u202eabc"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a file as a page; ``troubles`` of the page lists what it fetched, said on the console or threw."""
    pages = []

    def open_(path: Path, width: int = 1100, scheme: str = "light") -> Any:
        page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
        page.troubles = []
        page.on("console", lambda message: page.troubles.append(message.text))
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("request", lambda request: page.troubles.append(request.url) if request.url != path.as_uri() else None)
        page.goto(path.as_uri())
        page.wait_for_function("document.documentElement.dataset.ready === 'true'")
        pages.append(page)
        return page

    yield open_
    for page in pages:
        page.context.close()


def keep(page: Any, name: str) -> None:
    folder = os.environ.get("PLANEWISE_SCREENSHOTS")
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "store"
    campaign = str(ROOT / "examples" / "campaign.json")
    assert run(["nightly", "--store", str(path), "--campaign", campaign, str(ROOT / "examples" / "captures")]) == 3
    return path


def run_viewer(store: Path) -> Path:
    [path] = store.glob("bundles/eager-profile-01-*/viewer.html")
    return path


def campaign_report(store: Path) -> Path:
    [path] = store.glob("campaigns/*/report.html")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1100, 375])
@pytest.mark.parametrize("page_of", [run_viewer, campaign_report])
def test_a_page_fetches_nothing_and_fits_its_window(
    store: Path, opened: Any, page_of: Callable[[Path], Path], width: int, scheme: str
) -> None:
    page = opened(page_of(store), width, scheme)
    assert page.troubles == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    keep(page, f"{page_of.__name__}-{width}-{scheme}")


@pytest.mark.parametrize("page_of", [run_viewer, campaign_report])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_problem(store: Path, opened: Any, page_of: Callable[[Path], Path], scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    page = opened(page_of(store), scheme=scheme)
    page.evaluate(script)  # Not by a script element, which the page's policy keeps out.
    found = page.evaluate("axe.run().then((found) => found.violations)")
    assert [(rule["id"], [node["target"] for node in rule["nodes"]]) for rule in found] == []


def test_search_counts_and_shows_what_matches(store: Path, opened: Any) -> None:
    page = opened(run_viewer(store))
    timeline = page.locator(".timeline").first
    timeline.locator("input").fill("000006/backward")
    assert timeline.locator(".told").inner_text() == "1 row matches"
    timeline.locator("input").press("Enter")
    assert timeline.locator(".told").inner_text().startswith("1 of 1: train_tiny/update-000006/backward")


def test_buttons_and_keys_zoom_and_zero_shows_all(store: Path, opened: Any) -> None:
    page = opened(run_viewer(store))
    timeline = page.locator(".timeline").first
    timeline.get_by_role("button", name="Zoom in").click()
    first = int(timeline.get_attribute("data-width"))
    timeline.locator("canvas").focus()
    page.keyboard.press("+")
    second = int(timeline.get_attribute("data-width"))
    page.keyboard.press("0")
    whole = int(timeline.get_attribute("data-width"))
    assert abs(whole - 2 * first) <= 2
    assert abs(first - 2 * second) <= 2


def test_pointing_at_a_row_says_what_it_is(store: Path, opened: Any) -> None:
    page = opened(run_viewer(store))
    timeline = page.locator(".timeline").first
    timeline.locator("canvas").hover(position={"x": 300, "y": 22 + 16 + 9})
    assert "ms, starts at" in timeline.locator(".told").inner_text()


def test_the_campaign_links_into_bundles(store: Path, opened: Any) -> None:
    page = opened(campaign_report(store))
    page.get_by_role("link", name="eager-profile-01").click()
    page.wait_for_function("document.documentElement.dataset.ready === 'true'")
    assert page.locator("h1").inner_text() == "eager-profile-01"


def page_of(tiny: TinyStore, folder: Path) -> Path:
    [(_, packet)] = build_packets(tiny.con)
    path = folder / "page.html"
    path.write_text(run_page(packet, tiny.con), encoding="utf-8")
    return path


def test_hostile_texts_are_shown_and_never_run(tmp_path: Path, opened: Any) -> None:
    tiny = emptied()
    tiny.run(HOSTILE, entrypoint=HOSTILE, phase="\x00" + HOSTILE)
    tiny.add("spans", {"id": "s", "name": HOSTILE, "start_ns": 0, "duration_ns": 100, "measured": True}, run_id=HOSTILE)
    tiny.add("spans", {"id": "t", "name": "x" * 2**20, "start_ns": 1, "duration_ns": 50}, run_id=HOSTILE)
    tiny.add("tensor_stats", {"label": HOSTILE, "rms": 1.0, "abs_max": 1.0, "mean": 0.0}, run_id=HOSTILE)
    tiny.add("gradients", {"root": HOSTILE, "key": HOSTILE, "state": "present", "norm": 1.0}, run_id=HOSTILE)
    memory = {"storage_id": "a", "bytes": 7, "action": "alloc", "timestamp_ns": 1, "category": HOSTILE}
    tiny.add("memory_events", memory, run_id=HOSTILE)
    path = page_of(tiny, tmp_path)
    assert path.stat().st_size < 200_000
    page = opened(path)
    assert page.troubles == []
    assert page.title() != "taken"
    assert "document.title='taken'" in page.locator("h1").inner_text()
    assert page.locator("main img").count() == 0


def test_a_hundred_thousand_spans_stay_usable_and_a_cut_says_so(tmp_path: Path, opened: Any) -> None:
    tiny = emptied()
    tiny.run("r")
    tiny.add(
        "spans", {"id": "all", "name": "step", "start_ns": 0, "duration_ns": 120_000_000, "measured": True}, run_id="r"
    )
    tiny.con.execute("""
        INSERT INTO spans BY NAME
        SELECT * EXCLUDE (i) REPLACE ('n' || i AS id, 'work ' || i % 50 AS name, 'all' AS parent_id,
            i * 1000 AS start_ns, 500 + i % 400 AS duration_ns, false AS measured, i + 10 AS seq)
        FROM (FROM spans WHERE id = 'all'), range(120000) AS t(i)
    """)
    path = page_of(tiny, tmp_path)
    assert path.stat().st_size < 4_000_000
    page = opened(path)
    assert "100,000 of 120,001 rows drawn, the longest" in page.locator("#host-axis + p").inner_text()
    slowest = page.evaluate("""() => {
        const button = document.querySelector(".timeline [data-do=in]"), taken = [];
        for (let i = 0; i < 10; i++) {
            const begun = performance.now();
            button.click();
            taken.push(performance.now() - begun);
        }
        return Math.max(...taken);
    }""")
    assert slowest < 2000  # Far above what it takes; a page that cannot be used takes longer.
