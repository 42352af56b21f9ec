"""A page of a million events: how large it is, how soon it is ready, how smoothly it pans.

    make bench-page            needs Playwright, a Chromium of the system and `make checker`

The bounds are strict: under 15 MB, ready in under 2 s, and half of all frames within 1/60 s. A frame is measured from
one animation frame to the next while the window moves; drawing is the part of it that is ours.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright
from result import FATHOM, ROOT

TRAINING = ROOT / "target" / "release" / "examples" / "training"
EVENTS = 1_000_000
LOADS = 5
# Parts of the recording that the window shows while it moves.
WINDOWS = ((0.05, 0.95), (0.3, 0.7), (0.45, 0.55), (0.5, 0.501))
FRAMES = 120
PAN = """async ([from, to, count]) => {
  const { state, story, timeline, gestures } = globalThis.fathom;
  state.set({ from: story.ticks * from, to: story.ticks * to });
  await new Promise(requestAnimationFrame);
  timeline.frames.length = 0;
  const gaps = [];
  let last = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < count; frame++) {
    gestures.pan(frame < count / 2 ? 0.004 : -0.004);
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return [gaps, timeline.frames];
}"""


def ready(browser, path):
    """A page that is ready, and the seconds it took from nothing."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    began = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    return page, time.perf_counter() - began


def share(numbers, part):
    return sorted(numbers)[min(len(numbers) - 1, int(len(numbers) * part))]


def main():
    chromium = shutil.which("chromium") or shutil.which("google-chrome") or sys.exit("no Chromium on this machine")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        recording, path = Path(folder, "million.fathom"), Path(folder, "million.html")
        subprocess.run([TRAINING, recording, str(EVENTS)], check=True, capture_output=True)
        began = time.perf_counter()
        subprocess.run([FATHOM, "page", recording, "-o", path], check=True, capture_output=True)
        print(f"written in         {time.perf_counter() - began:6.2f} s")
        size = path.stat().st_size
        print(f"size               {size / 1e6:6.2f} MB")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        loads = []
        for _ in range(LOADS):
            page, seconds = ready(browser, path)
            loads.append(seconds)
        print(
            f"ready after        {statistics.median(loads):6.2f} s  (of {LOADS}: {min(loads):.2f} to {max(loads):.2f})"
        )
        print("window     frames: median     95 %      drawing: median     95 %     (ms)")
        medians = []
        for window in WINDOWS:
            gaps, drawing = page.evaluate(PAN, [*window, FRAMES])
            medians.append(statistics.median(gaps))
            width, ours = window[1] - window[0], statistics.median(drawing)
            frames = f"{medians[-1]:6.1f}   {share(gaps, 0.95):6.1f}"
            print(f"{width:6.1%}           {frames}               {ours:6.1f}   {share(drawing, 0.95):6.1f}")
        browser.close()
    good = size < 15_000_000 and statistics.median(loads) < 2 and max(medians) < 17
    sys.exit(0 if good else "a bound is broken")


if __name__ == "__main__":
    main()
