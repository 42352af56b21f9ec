"""The viewer: one HTML file that answers what the command answers, in a browser that can reach nothing."""

import http.server
import json
import os
import subprocess
import threading
from pathlib import Path

import pytest
from conftest import FATHOM, ROOT, environment
from pages import SCREENSHOTS, browser, embedded  # noqa: F401

WASM = ROOT / "target" / "release" / "fathom_viewer.wasm"
RECORDED = ROOT / "tests" / "recorded"
MESSAGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB "
    "of which 1.10 GiB is free. Process 1 has 22.50 GiB memory in use. Of the allocated memory 21.00 GiB is allocated "
    "by PyTorch, and 1.20 GiB is reserved by PyTorch but unallocated."
)


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    if not WASM.exists():
        pytest.skip("THE VIEWER IS NOT TESTED: Rust's wasm target is missing, see `make viewer`")
    path = tmp_path_factory.mktemp("viewer") / "viewer.html"
    done = command("viewer", "-o", path, at=path.parent)
    assert done.returncode == 0, done.stderr
    return path


def command(*words, at):
    variables = environment({"NO_COLOR": "1", "COLUMNS": "100"})
    done = subprocess.run([FATHOM, *words], cwd=at, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2), done.stderr
    return done


class Shown:
    """A viewer in a browser, with what it asked of the network and what went wrong."""

    def __init__(self, browser, viewer, **options):
        options.setdefault("viewport", {"width": 1280, "height": 800})
        self.context = browser.new_context(accept_downloads=True, **options)
        self.page = self.context.new_page()
        self.requests, self.errors = [], []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: line.type == "error" and self.errors.append(line.text))
        self.page.goto(viewer.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")

    def give(self, *files):
        self.page.set_input_files("#viewer-files", [str(file) for file in files])
        return self.answered()

    def answered(self):
        self.page.wait_for_selector("html[data-answered]", state="attached", timeout=60_000)
        return self.page.evaluate("fathom.answer")

    def problem(self):
        return self.page.locator("#viewer-problem").inner_text()


@pytest.fixture
def show(browser, viewer):
    all_shown = []

    def show(**options):
        all_shown.append(Shown(browser, viewer, **options))
        return all_shown[-1]

    yield show
    for shown in all_shown:
        shown.context.close()
        outside = [url for url in shown.requests if not url.startswith((viewer.as_uri(), "blob:", "about:", "data:"))]
        assert (outside, shown.errors) == ([], [])


def files_of(folder):
    return sorted(path for path in folder.glob("*") if path.suffix in (".pickle", ".pkl", ".fathom"))


def compare_with_command(show, files, at):
    shown = show()
    for file in files:
        answer = shown.give(file)
        explained = command("explain", file.name, at=file.parent)
        if explained.returncode:
            words = " ".join(shown.problem().split())
            assert words == " ".join(explained.stderr.removeprefix("error: ").split()), file
            continue
        # The command says in the end what to type next.
        assert answer["text"] == explained.stdout.partition("\nnext  ")[0] + "\n", file
        report = at / "report.json"
        command("explain", file.name, "--json", report, at=file.parent)
        assert json.loads(answer["json"]) == json.loads(report.read_text()), file
        page = at / "page.html"
        command("page", file.name, "-o", page, at=file.parent)
        assert answer["page"] == page.read_text(), file


def test_numbers_are_those_of_the_command(show, tmp_path):
    files = files_of(RECORDED)[:6]
    assert files
    compare_with_command(show, files, tmp_path)


@pytest.mark.matrix
@pytest.mark.skipif("FATHOM_SNAPSHOTS" not in os.environ, reason="FATHOM_SNAPSHOTS names no folder of snapshots")
def test_numbers_of_real_snapshots(show, tmp_path):
    compare_with_command(show, files_of(Path(os.environ["FATHOM_SNAPSHOTS"])), tmp_path)


def test_the_page_of_a_file_is_seen(show):
    shown = show()
    file = files_of(RECORDED)[0]
    shown.give(file)
    frame = shown.page.frame_locator("#viewer-page")
    frame.locator("html[data-ready]").wait_for(state="attached")
    assert frame.locator("#verdict").inner_text()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    shown.page.screenshot(path=SCREENSHOTS / "viewer-file.png")
    # What is chosen on the page is kept in its address, as on disk.
    frame.locator("[data-value=line]").first.click()
    shown.page.wait_for_timeout(400)


def test_a_text_is_explained(show, tmp_path):
    shown = show()
    shown.page.fill("#viewer-text", MESSAGE)
    shown.page.click("#viewer-form button")
    answer = shown.answered()
    (tmp_path / "the text").write_text(MESSAGE)
    assert answer["text"] == command("explain", "the text", at=tmp_path).stdout
    assert shown.page.locator("#viewer-answer").inner_text().startswith(answer["text"][:40])


def test_two_files_are_compared(show, tmp_path):
    files = files_of(RECORDED)[:2]
    answer = show().give(*files)
    difference = command("diff", *(file.name for file in files), at=files[0].parent)
    assert answer["text"] == difference.stdout
    reports = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, report in zip(files, reports, strict=True):
        command("explain", file.name, "--json", report, at=file.parent)
    answer = show().give(*reports)
    assert answer["text"] == command("diff", "a.json", "b.json", at=tmp_path).stdout


HOSTILE = {
    "empty.pickle": b"",
    "cut.pickle": b"\x80\x04\x95",
    "deep.pickle": b"\x80\x02" + b"(" * 200_000 + b"l" * 200_000 + b".",
    "code.pickle": b"cos\nsystem\n(S'touch /tmp/x'\ntR.",
    "nested.json": b'{"a":' * 100_000,
    "zeros.fathom": bytes(1000),
    "other.json": b'{"schema": "other/1"}',
}


def test_hostile_files_are_refused_with_the_same_words(show, tmp_path):
    shown = show()
    for name, content in HOSTILE.items():
        file = tmp_path / name
        file.write_bytes(content)
        shown.give(file)
        verb = ("page", "-o", "x.html") if name.endswith(".json") else ("explain",)
        refused = command(*verb, name, at=tmp_path)
        assert refused.returncode == 2, name
        assert " ".join(shown.problem().split()) == " ".join(refused.stderr.removeprefix("error: ").split())
    # And the viewer goes on.
    assert shown.give(files_of(RECORDED)[0])["page"]


@pytest.fixture
def server():
    """Somebody who would notice a request."""
    seen = []

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.path)
            self.send_response(200)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", seen
        server.shutdown()


TRIES = """async (url) => {
  const source = `fetch("${url}worker").then(() => postMessage("sent"), () => postMessage("refused"))`;
  const worker = new Worker(URL.createObjectURL(new Blob([source])));
  const by_worker = new Promise((done) => { worker.onmessage = ({ data }) => done(data); });
  const image = new Promise((done) => {
    const it = new Image();
    it.onload = it.onerror = done;
    it.src = url + "x.png";
  });
  const fetched = fetch(url).then(() => "sent", () => "refused");
  navigator.sendBeacon(url + "beacon", "x");
  await image;
  return [await fetched, await by_worker];
}"""


def test_no_connection_can_be_made(browser, show, server):
    url, seen = server
    elsewhere = browser.new_context()
    page = elsewhere.new_page()
    page.goto(url + "control")
    assert page.evaluate(TRIES, url) == ["sent", "sent"] and len(seen) >= 4, "the tries would be seen"
    elsewhere.close()
    seen.clear()
    shown = show()
    assert shown.page.evaluate(TRIES, url) == ["refused", "refused"]
    shown.page.wait_for_timeout(300)
    assert seen == []
    assert all("Content Security Policy" in error for error in shown.errors), shown.errors
    shown.errors.clear()
    shown.requests.clear()


def test_more_than_it_can_hold_is_said_at_once(show):
    shown = show()
    shown.page.evaluate("""() => {
      const file = new File(["x"], "large.pickle");
      Object.defineProperty(file, "size", { value: 2 ** 30 + 1 });
      fathom.take([file]);
    }""")
    assert "no room for more than 1.00 GiB" in shown.problem() and "fathom page" in shown.problem()


def test_a_panic_is_an_answer(show):
    """What ends the instance is said, and the next file gets a new one."""
    shown = show()
    shown.page.evaluate("fathom.good = fathom.wasm; fathom.wasm = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])")
    shown.give(files_of(RECORDED)[0])
    assert "the analysis ended" in shown.problem()
    shown.page.evaluate("fathom.wasm = fathom.good")
    assert shown.give(files_of(RECORDED)[0])["page"]


def test_what_is_shown_can_be_saved(show, tmp_path):
    shown = show()
    answer = shown.give(files_of(RECORDED)[0])
    with shown.page.expect_download() as download:
        shown.page.click("#viewer-save")
    saved = tmp_path / "saved.html"
    download.value.save_as(saved)
    assert saved.read_text() == answer["page"] and embedded(saved)["items"]


def test_it_looks_right(show):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            shown = show(viewport={"width": width, "height": 800}, color_scheme=scheme)
            shown.page.screenshot(path=SCREENSHOTS / f"viewer-{scheme}-{width}.png")
            wide = shown.page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width
