"""The oldest glibc that a wheel shall run on: as it was asked for, and as the files of the wheel say."""

import platform
import re
import subprocess
import sys


def wanted(settings):
    """The oldest glibc that the wheel shall run on, as `2.28`; None: that of this machine."""
    version = (settings or {}).get("glibc")
    if version is not None and not re.fullmatch(r"2\.\d+", version):
        raise SystemExit(f"error: glibc is `{version}`\n\nhint: write a version, as in `-C glibc=2.28`")
    return version


def tag(version):
    """Without the machine."""
    return f"manylinux_{version.replace('.', '_')}"


def check(wheel, version):
    """Every file of the wheel, whatever its name says."""
    least = f"{tag(version)}_{platform.machine()}"
    done = subprocess.run([sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True)
    found = re.search(r'following platform tag:\s+"(\w+)"', done.stdout)
    said = found and found.group(1)
    if said is None or newest(said) > newest(least) or least not in wheel.name:
        wheel.unlink()
        raise SystemExit(f"error: {wheel.name} is tagged {least}, but auditwheel says {said}\n{done.stdout}{done.stderr}")


def newest(platform_tag):
    """The glibc of a tag, to be compared; other tags are newer than any."""
    found = re.match(r"manylinux_(\d+)_(\d+)_", platform_tag)
    return (int(found.group(1)), int(found.group(2))) if found else (99, 0)
