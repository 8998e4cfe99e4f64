"""Samples in what a remote command prints, however it is cut into pieces and whatever stands between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import Gpu, Host
from gpulse.model.codec import to_line
from gpulse.model.snapshot import Snapshot
from gpulse.remote import samples
from gpulse.remote.samples import SampleReader, TooMuch

_LOG = b"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <timestamp>Mon Nov 16 06:00:00 2026</timestamp>
  <driver_version>550.54</driver_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:01:00.0">
    <product_name>NVIDIA A10</product_name>
    <uuid>GPU-1</uuid>
    <utilization><gpu_util>%d %%</gpu_util></utilization>
  </gpu>
</nvidia_smi_log>
"""


def _sample(at: float) -> Snapshot:
    return Snapshot(at, (Gpu({"index": 0, "uuid": "GPU-1", "utilization": 50.0}),), Host({"name": "box"}))


@given(
    st.lists(
        st.sampled_from(["sample", "Welcome!\n", "{broken\n", "\x1b[31m\n", '{"schema": 9}\n', "\n"]), max_size=12
    ),
    st.lists(st.integers(1, 400), max_size=30),
)
def test_samples_are_found_between_other_lines_in_any_pieces(parts: list[str], cuts: list[int]) -> None:
    sent = [_sample(1e9 + at) for at in range(parts.count("sample"))]
    left = iter(sent)
    stream = "".join(to_line(next(left)) + "\n" if part == "sample" else part for part in parts).encode()
    reader, got, at = SampleReader("box"), list[Snapshot](), 0
    for cut in [*cuts, len(stream)]:
        got += reader.feed(stream[at : at + cut])
        at += cut
    assert got == sent


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_logs_of_nvidia_smi_are_samples(size: int) -> None:
    stream = b"motd\n" + _LOG % 10 + _LOG % 80
    reader = SampleReader("box")
    got = [one for at in range(0, len(stream), size) for one in reader.feed(stream[at : at + size])]
    reader.close()
    assert [one.gpus[0].utilization for one in got] == [10, 80]
    assert {(one.host.name, one.gpus[0].name) for one in got} == {("box", "NVIDIA A10")}


def test_output_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "MOST", 1000)
    reader = SampleReader("box")
    assert list(reader.feed(b"x" * 900)) == []
    with pytest.raises(TooMuch):
        list(reader.feed(b"x" * 900))
    assert list(reader.feed(f"\n{to_line(_sample(1.0))}\n".encode())) == [_sample(1.0)]
