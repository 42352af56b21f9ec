"""Frees that wait for other streams: what the peak would be if their work were done as late as possible."""

IS_WARM = True


def peaks(done):
    assert done.returncode == 0, done.stdout + done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("PEAKS "))
    return tuple(map(int, line.split()[1:]))


def test_the_late_end_is_what_the_phantom_gives_when_it_is_late(fathom):
    """The replay of one run, against PyTorch's own allocator on a phantom whose events complete late."""
    report, done = fathom.script("record_stream", flags=("--steps", "0"))
    allocated, reserved, active = peaks(done)
    deferred = report["deferred_frees"]
    assert deferred["count"] == 24
    assert deferred["at_once"] == {"reserved_bytes": reserved, "active_bytes": active, "known": "measured"}
    slow, done_late = fathom.script("record_stream", flags=("--steps", "0"), env={"FATHOM_EVENTS": "late"})
    late = peaks(done_late)
    assert late == (allocated, deferred["late"]["reserved_bytes"], deferred["late"]["active_bytes"])
    assert late[1] > reserved and late[2] > active
    assert deferred["late"]["known"] == "modelled" and deferred["late_fits"]
    assert "24 frees waited for work of other streams" in done.stdout
    assert "deferred_frees" not in slow, "nothing is done at once there"


def test_nothing_is_said_without_such_frees(shared):
    report, done = shared("script", "resnet50_sgd")
    assert done.returncode == 0 and "deferred_frees" not in report
