"""A report as a reader sees it: opened in headless Chromium, 1280 pixels wide.

    python benchmarks/browser.py report.html [more.html ...] [--out FOLDER] [--chromium PATH]

What must hold: no error on the console, no request but for the file itself, every figure drawn, no scrolling sideways,
8 MB at most. FOLDER (that of the report if left out) gets NAME.browser.json with what was found and NAME.browser.png
with the whole page, to be looked at. The exit code is the number of reports of which something does not hold.

Chromium is spoken to by its DevTools protocol through two pipes, which needs nothing but Python.
"""

import argparse
import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDTH, HEIGHT = 1280, 900
MOST_BYTES = 8_000_000
_PATIENCE = 120.0  # seconds for all figures: those in three dimensions are drawn without a graphics card here
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--no-first-run")
# Chromium reads from 3 and writes to 4. Not by preexec_fn: that is not safe in a process with threads.
_LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
# A figure is drawn when plotly says so and its picture is there; in three dimensions, that is a canvas.
_SEEN = """(() => {
  const places = [...document.querySelectorAll('.plot')];
  const drawn = place => place.dataset.drawn === 'yes' && place.querySelector('.main-svg') !== null
    && (!('scene' in (place.layout || {})) || place.querySelector('canvas') !== null);
  return {figures: places.length, missing: places.filter(place => !drawn(place)).map(place => place.id),
    width: document.documentElement.scrollWidth, height: document.documentElement.scrollHeight};
})()"""


class Browser:
    """A headless Chromium with one page, used as a context."""

    def __init__(self, program: str):
        self._program = program
        self._events: list[dict] = []
        self._pending = b""
        self._number = 0
        self._session: str | None = None

    def __enter__(self) -> "Browser":
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours, theirs = os.pipe(), os.pipe()
        # Away from 3 and 4, which the ends that Chromium gets are put to last.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (ours[0], theirs[1])]
        options = [*_FLAGS, f"--user-data-dir={self._profile.name}", "--remote-debugging-pipe", "about:blank"]
        self._child = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, *map(str, ends), self._program, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=ends,
        )
        for end in (*ends, ours[0], theirs[1]):
            os.close(end)
        self._to, self._from = ours[1], theirs[0]
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1, mobile=False)
        return self

    def __exit__(self, *error: object) -> None:
        self._child.terminate()
        self._child.wait(30)
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    def call(self, method: str, **params: object) -> dict:
        """The answer to a command; events that come in between are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        content = json.dumps(message).encode() + b"\0"
        while content:
            content = content[os.write(self._to, content) :]
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"Chromium refuses {method}: {answer['error']['message']}")
                return answer["result"]
            self._events.append(answer)

    def evaluate(self, expression: str) -> dict:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value") or {}

    def events(self, method: str) -> list[dict]:
        return [event["params"] for event in self._events if event.get("method") == method]

    def _read(self) -> dict:
        while b"\0" not in self._pending:
            if not select.select([self._from], [], [], 60.0)[0]:
                raise RuntimeError("Chromium has not answered for a minute.")
            part = os.read(self._from, 2**20)
            if not part:
                raise RuntimeError("Chromium has ended.")
            self._pending += part
        message, _, self._pending = self._pending.partition(b"\0")
        return json.loads(message)


def look(browser: Browser, page: Path) -> tuple[dict, bytes]:
    """What is found on a page, and a picture of all of it."""
    address = page.resolve().as_uri()
    began = time.monotonic()
    browser.call("Page.navigate", url=address)
    seen: dict = {}
    while time.monotonic() - began < _PATIENCE and not (seen.get("figures") and not seen["missing"]):
        time.sleep(0.2)
        seen = browser.evaluate(_SEEN)
    seconds = time.monotonic() - began
    time.sleep(1.0)  # what comes after the drawing: late requests and errors
    seen = browser.evaluate(_SEEN)
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": seen["height"], "scale": 1}
    picture = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
    found = seen | {
        "console": _said(browser, "error", "assert"),
        # Advice on the speed of drawing, mostly: kept to be read, but nothing is wrong.
        "warnings": _said(browser, "warning"),
        "requests": sorted(
            {e["request"]["url"][:200] for e in browser.events("Network.requestWillBeSent")} - {address}
        ),
        "bytes": page.stat().st_size,
        "seconds": round(seconds, 1),
    }
    return found | {"fails": fails(found)}, base64.b64decode(picture)


def fails(found: dict) -> list[str]:
    """What does not hold of a page."""
    # Pages may hold pictures as data and programs as blobs; neither leaves the file.
    foreign = [url for url in found["requests"] if not url.startswith(("data:", "blob:"))]
    checks = {
        "it has no figure": not found["figures"],
        f"figures that are not drawn: {', '.join(found['missing'])}": found["missing"],
        f"the console says: {'; '.join(found['console'])}": found["console"],
        f"it asks for {', '.join(foreign)}": foreign,
        f"it is {found['width']} pixels wide": found["width"] > WIDTH,
        f"it has {found['bytes']} bytes": found["bytes"] > MOST_BYTES,
    }
    return [text for text, holds in checks.items() if holds]


def _said(browser: Browser, *levels: str) -> list[str]:
    """What the page and the browser itself said on the console at these levels; an exception is an error."""
    logged = [event["entry"] for event in browser.events("Log.entryAdded")]
    said = [entry["text"] for entry in logged if entry["level"] in levels]
    for event in browser.events("Runtime.consoleAPICalled"):
        if event["type"] in levels:
            said.append(" ".join(str(part.get("value", part.get("description", ""))) for part in event["args"]))
    for event in browser.events("Runtime.exceptionThrown") if "error" in levels else ():
        details = event["exceptionDetails"]
        said.append(details.get("exception", {}).get("description", details["text"]))
    return [text[:300] for text in said]


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, nargs="+")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--chromium", default=find_chromium())
    options = parser.parse_args()
    if options.chromium is None:
        parser.error(f"none of {', '.join(NAMES)} is on the path. Install one, or give --chromium.")
    bad = 0
    for report in options.report:
        with Browser(options.chromium) as browser:
            found, picture = look(browser, report)
        place = (options.out or report.parent) / report.stem
        place.with_suffix(".browser.png").write_bytes(picture)
        place.with_suffix(".browser.json").write_text(json.dumps(found, indent=1) + "\n")
        print(f"{report}: {'; '.join(found['fails']) or 'all holds'}.")
        bad += bool(found["fails"])
    return bad


if __name__ == "__main__":
    sys.exit(main())
