"""Sizes that depend on values: the same on the phantom as on the CPU, for every step."""

import pytest
from conftest import PYTHON, ROOT, sampled

IS_WARM = True

HERE = ROOT / "tests" / "sizes"
CASES = {
    "sparse": (),
    "detectors": ("fasterrcnn_mobilenet_v3_large_320_fpn", "maskrcnn_resnet50_fpn", "retinanet_resnet50_fpn"),
}


@pytest.mark.parametrize("name", sampled(CASES, ["sparse"]))
def test_sizes_are_those_of_the_cpu(fathom, name):
    def said(device):
        words = (PYTHON, HERE / f"{name}.py", device, *CASES[name])
        report, done = fathom(*words, flags=("--gpu", "rtx3090", "--steps", "0", "--record", "off"), timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return report, [line for line in done.stdout.splitlines() if line.startswith("SIZES")]

    _, expected = said("cpu")
    report, found = said("cuda")
    assert found == expected and len(found) >= 9
    assert [row for row in report["decisions"] if row["why"] != "modelled"] == [], report["decisions"]
    assert report["headline"].startswith("FITS  ")
