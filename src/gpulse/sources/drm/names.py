"""Product names of GPUs, from the lists of libdrm and of the distribution."""

from __future__ import annotations

from ..files import read_bytes

_AMD_LISTS = ("/usr/share/libdrm/amdgpu.ids", "/opt/amdgpu/share/libdrm/amdgpu.ids")
_PCI_LISTS = ("/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids", "/usr/share/pci.ids")
_MOST = 1 << 23


def amd_name(root: str, device: int, revision: int) -> str:
    """Return the name of libdrm's list, whose lines are `73BF,\\tC0,\\tAMD Radeon RX 6900 XT`; nothing where it has none."""
    wanted = f"{device:04X},\t{revision:02X},".encode()
    for place in dict.fromkeys(f"{base}{path}" for path in _AMD_LISTS for base in (root, "")):
        for line in (read_bytes(place, _MOST) or b"").splitlines():
            if line.upper().startswith(wanted):
                return line.split(b",", 2)[2].strip().decode("utf-8", "replace")
    return ""


def pci_name(root: str, vendor: int, device: int) -> str:
    """Return the name of the distribution's list of PCI ids: the text in brackets where there is one; nothing if it is not there."""
    for place in dict.fromkeys(f"{base}{path}" for path in _PCI_LISTS for base in (root, "")):
        content = read_bytes(place, _MOST) or b""
        start = content.find(f"\n{vendor:04x}  ".encode())
        if start < 0:
            continue
        for line in content[start + 1 :].split(b"\n")[1:]:
            if line[:1] not in (b"\t", b"#"):
                break
            if line.startswith(f"\t{device:04x}  ".encode()):
                return _short(line[7:].decode("utf-8", "replace").strip())
    return ""


def _short(name: str) -> str:
    """Return the product name: the text in brackets of `Navi 31 [Radeon RX 7900 XT/7900 XTX]`, if there is one."""
    _, bracket, rest = name.partition("[")
    return rest.rstrip("]").strip() if bracket and rest else name
