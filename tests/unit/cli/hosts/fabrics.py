"""Subnets as ibnetdiscover prints them, line by line as rdma-core's infiniband-diags/ibnetdiscover.c writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

BEGIN = "#\n# Topology file: generated on Thu Nov 26 09:30:00 2026\n#\n# Initiated from node {0} port {0}\n"


def switch_guid(number: int) -> str:
    return f"ec0d9a0300ec{number:04x}"


def adapter_guid(host: int, rail: int = 0) -> str:
    return f"506b4b03{host:04x}{rail:04x}"


def printed(leaves: Mapping[int, Sequence[str]], uplinks: Mapping[int, Sequence[int]]) -> str:
    """The text; `leaves`: switch → node GUIDs of its adapters, `uplinks`: switch → switches that it has links to."""
    numbers = sorted({*leaves, *uplinks, *(other for others in uplinks.values() for other in others)})
    beside = {number: {*uplinks.get(number, ()), *_below(number, uplinks)} for number in numbers}
    lines = [BEGIN.format(adapter_guid(0))]
    for number in numbers:
        guid = switch_guid(number)
        own = [f'"H-{each}"[1]({int(each, 16):x}) \t\t# "node HCA-1" lid 67 4xNDR' for each in leaves.get(number, ())]
        own += [f'"S-{switch_guid(each)}"[19]\t\t# "Quantum" lid 21 4xNDR' for each in sorted(beside[number])]
        lines += [f"\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x{guid}\nswitchguid=0x{guid}({guid})"]
        lines += [f'Switch\t{len(own)} "S-{guid}"\t\t# "MF0;ib-01:MQM9700/U1" enhanced port 0 lid {number} lmc 0']
        lines += [f"[{port}]\t{each}" for port, each in enumerate(own, start=1)]
    for number, adapters in leaves.items():
        for port, each in enumerate(adapters, start=1):
            lines += [
                f'\nvendid=0x2c9\ndevid=0x1021\nsysimgguid=0x{each}\ncaguid=0x{each}\nCa\t1 "H-{each}"\t\t# "node"'
            ]
            peer = f'"S-{switch_guid(number)}"[{port}]\t\t# lid 67 lmc 0 "MF0;ib-01:MQM9700/U1" lid {number} 4xNDR'
            lines += [f"[1]({int(each, 16):x}) \t{peer}"]
    return "\n".join(lines) + "\n"


def _below(number: int, uplinks: Mapping[int, Sequence[int]]) -> set[int]:
    return {lower for lower, others in uplinks.items() if number in others}
