#!/usr/bin/env python3
"""A stand-in for nvidia-smi in rehearsed machines: the same options and shapes, simulated GPUs.

Standard library only, Python 3.9, one file: it is copied into the machine unchanged, and runs there.
Its data lies in /etc/clusterctl-rehearsal/gpus.json.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any  # rows of JSON

DATA = "/etc/clusterctl-rehearsal/gpus.json"
MARK = "SIMULATED by clusterctl rehearsal: there is no GPU here"
WIDTH = 89
USAGE = """NVIDIA System Management Interface -- v{version} (simulated)

nvidia-smi [OPTION1 [ARG1]] [OPTION2 [ARG2]] ...

    -h,   --help                Print usage information and exit.
          --version             Print version information and exit.
    -L,   --list-gpus           Display a list of GPUs connected to the system.
    -i,   --id=                 Target a specific GPU, or several, separated by commas.
    -q,   --query               Display GPU information (with -x: as XML).
          --query-gpu=          Information about GPUs: a comma separated list of fields.
          --query-compute-apps= Processes that use a GPU.
          --query-remapped-rows=
          --format=             csv[,noheader][,nounits]
    -l,   --loop=               Query again every so many seconds.
          nvlink -s             Display the state of NVLinks.
"""

Row = dict[str, Any]
Fields = dict[str, tuple[Any, str]]

# field: (key in the data or a function of a GPU's row, unit)
FIELDS: Fields = {
    "count": (lambda gpu: gpu["count"], ""),
    "clocks.current.memory": ("memory_mhz", "MHz"),
    "clocks.current.sm": ("sm_mhz", "MHz"),
    "clocks.gr": ("sm_mhz", "MHz"),
    "clocks.max.sm": ("sm_max_mhz", "MHz"),
    "clocks.mem": ("memory_mhz", "MHz"),
    "clocks.sm": ("sm_mhz", "MHz"),
    "clocks_event_reasons.active": ("throttle_reasons", ""),
    "clocks_throttle_reasons.active": ("throttle_reasons", ""),
    "compute_mode": (lambda gpu: "Default", ""),
    "driver_version": ("driver_version", ""),
    "ecc.errors.corrected.volatile.total": ("ecc_corrected", ""),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrected", ""),
    "ecc.mode.current": (lambda gpu: "Enabled", ""),
    "fan.speed": (lambda gpu: "[N/A]", ""),
    "gpu_bus_id": ("bus_id", ""),
    "gpu_name": ("name", ""),
    "gpu_uuid": ("uuid", ""),
    "index": ("index", ""),
    "memory.free": (lambda gpu: gpu["memory_total_mib"] - gpu["memory_used_mib"], "MiB"),
    "memory.total": ("memory_total_mib", "MiB"),
    "memory.used": ("memory_used_mib", "MiB"),
    "mig.mode.current": (lambda gpu: "Enabled" if gpu.get("mig_devices") else "Disabled", ""),
    "name": ("name", ""),
    "pci.bus_id": ("bus_id", ""),
    "persistence_mode": (lambda gpu: "Enabled", ""),
    "power.draw": (lambda gpu: format(gpu["power_w"], ".2f"), "W"),
    "power.limit": (lambda gpu: format(gpu["power_limit_w"], ".2f"), "W"),
    "pstate": ("pstate", ""),
    "serial": ("serial", ""),
    "temperature.gpu": ("temperature_c", ""),
    "timestamp": (lambda gpu: time.strftime("%Y/%m/%d %H:%M:%S.000"), ""),
    "utilization.gpu": ("utilization_percent", "%"),
    "utilization.memory": (lambda gpu: gpu.get("memory_utilization_percent", 0), "%"),
    "uuid": ("uuid", ""),
}
REMAPPED: Fields = {
    "gpu_uuid": ("uuid", ""),
    "gpu_bus_id": ("bus_id", ""),
    "gpu_name": ("name", ""),
    "remapped_rows.correctable": ("ecc_corrected", ""),
    "remapped_rows.uncorrectable": (lambda gpu: 0, ""),
    "remapped_rows.pending": ("remapped_pending", ""),
    "remapped_rows.failure": ("remapped_failure", ""),
}
APPS: Fields = {
    "gpu_uuid": ("uuid", ""),
    "gpu_name": ("gpu_name", ""),
    "gpu_bus_id": ("bus_id", ""),
    "pid": ("pid", ""),
    "process_name": ("process_name", ""),
    "name": ("process_name", ""),
    "used_gpu_memory": ("used_mib", "MiB"),
    "used_memory": ("used_mib", "MiB"),
}


def main(argv: list[str], path: str = DATA) -> int:
    """Prints what was asked for, once or in a loop; the exit code is nvidia-smi's."""
    try:
        asked = parse(argv)
    except Wrong as wrong:
        print(wrong)
        return 2
    code = answer(asked, path)
    while code == 0 and asked.get("loop"):
        sys.stdout.flush()
        time.sleep(float(asked["loop"]))
        code = answer(asked, path)
    return code


def answer(asked: dict[str, str], path: str) -> int:
    """Prints one answer from the data of this moment; returns the exit code."""
    try:
        with open(path) as file:
            data = json.load(file)
    except OSError:
        data = {}
    if not data or data.get("driver") == "broken":
        print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. " + MARK)
        return 9
    rows = [dict(gpu, count=len(data["gpus"]), driver_version=data["driver_version"]) for gpu in data["gpus"]]
    try:
        gpus = chosen(rows, asked.get("id"))
        for gpu in gpus:
            if gpu.get("lost"):
                print(f"Unable to determine the device handle for GPU{gpu['bus_id'][4:]}: Unknown Error ({MARK})")
                return 255
        print(show(asked, data, gpus), end="")
    except Wrong as wrong:
        print(wrong)
        return 6 if asked.get("id") else 2
    return 0


class Wrong(Exception):
    """An option, a field or a GPU that this program does not know; the message is like nvidia-smi's."""


def parse(argv: list[str]) -> dict[str, str]:
    """The options as a dictionary. Raises Wrong."""
    long = {
        "-h": "help",
        "-L": "list-gpus",
        "-q": "query",
        "-x": "xml-format",
        "-i": "id",
        "-l": "loop",
        "-s": "status",
    }
    known = {"help", "version", "list-gpus", "query", "xml-format", "id", "format", "loop", "nvlink", "status"}
    known |= {"query-gpu", "query-compute-apps", "query-remapped-rows"}
    asked: dict[str, str] = {}
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        name, is_set, value = word.partition("=")
        name = long.get(name) or (name[2:] if name.startswith("--") else "nvlink" if name == "nvlink" else "")
        if name not in known:
            raise Wrong(f"ERROR: Option {word} is not recognized. Please run 'nvidia-smi -h'.")
        if name in ("id", "loop") and not is_set:
            value = rest.pop(0) if rest else ""
        asked[name] = value
    return asked


def chosen(rows: list[Row], ids: str | None) -> list[Row]:
    """The GPUs that -i names by index, UUID or bus id; all without it. Raises Wrong if it names none."""
    if ids is None:
        return rows
    wanted = ids.split(",")
    found = [gpu for gpu in rows if {str(gpu["index"]), gpu["uuid"], gpu["bus_id"]} & set(wanted)]
    if not found:
        raise Wrong("No devices were found")
    return found


def show(asked: dict[str, str], data: Row, gpus: list[Row]) -> str:
    """The text that the options ask for. Raises Wrong."""
    if "help" in asked:
        return USAGE.format(version=data["driver_version"])
    if "version" in asked:
        driver = data["driver_version"]
        first = f"NVIDIA-SMI version  : {driver} (simulated)\nDRIVER version      : {driver}\n"
        return first + f"CUDA Version        : {data['cuda_version']}\n"
    if "nvlink" in asked:
        return "".join(map(links, gpus))
    if "list-gpus" in asked:
        return "".join(f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})\n" for gpu in gpus)
    if "query-gpu" in asked:
        return csv(asked["query-gpu"], asked.get("format"), FIELDS, gpus)
    if "query-remapped-rows" in asked:
        return csv(asked["query-remapped-rows"], asked.get("format"), REMAPPED, gpus)
    if "query-compute-apps" in asked:
        return csv(asked["query-compute-apps"], asked.get("format"), APPS, processes(gpus))
    if "query" in asked:
        return xml(data, gpus) if "xml-format" in asked else details(data, gpus)
    return table(data, gpus)


def processes(gpus: list[Row]) -> list[Row]:
    """A row for each process on each GPU."""
    return [dict(gpu, gpu_name=gpu["name"], **process) for gpu in gpus for process in gpu.get("processes", ())]


def csv(fields: str, form: str | None, known: Fields, gpus: list[Row]) -> str:
    """Comma separated values, with units unless `form` has `nounits`. Raises Wrong for an unknown field."""
    options = (form or "").split(",")
    if options[0] != "csv":
        raise Wrong("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.")
    names = [name.strip() for name in fields.split(",")]
    for name in names:
        if name not in known:
            raise Wrong(f'Field "{name}" is not a valid field to query.\n')
    with_units = "nounits" not in options
    lines = []
    if "noheader" not in options:
        lines.append(", ".join(_named(name, known[name][1], with_units) for name in names))
    for gpu in gpus:
        values = [(_value(gpu, known[name][0]), known[name][1]) for name in names]
        lines.append(", ".join(f"{value} {unit}" if unit and with_units else value for value, unit in values))
    return "".join(line + "\n" for line in lines)


def _named(name: str, unit: str, with_units: bool) -> str:
    return f"{name} [{unit}]" if unit and with_units else name


def _value(gpu: Row, key: Any) -> str:
    return str(key(gpu) if callable(key) else gpu[key])


def details(data: Row, gpus: list[Row]) -> str:
    """What -q shows, shortened."""
    lines = ["", "==============NVSMI LOG==============", "", MARK, ""]
    lines.append(f"Driver Version                            : {data['driver_version']}")
    lines.append(f"CUDA Version                              : {data['cuda_version']}")
    lines.append(f"Attached GPUs                             : {len(gpus)}")
    for gpu in gpus:
        lines.append(f"GPU {gpu['bus_id']}")
        lines += [f"    {name:<38}: {csv(name, 'csv,noheader', FIELDS, [gpu]).strip()}" for name in sorted(FIELDS)]
    return "\n".join(lines) + "\n"


def links(gpu: Row) -> str:
    """What nvlink -s shows of one GPU; nothing for one without NVLink."""
    down = gpu.get("nvlinks_down", 0)
    lines = [f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})"]
    for link in range(gpu.get("nvlinks", 0)):
        lines.append(f"\t Link {link}: " + ("<inactive>" if link < down else f"{gpu['nvlink_gb_per_s']} GB/s"))
    return "\n".join(lines) + "\n" if gpu.get("nvlinks") else ""


def xml(data: Row, gpus: list[Row]) -> str:
    """What -q -x shows, shortened: the elements of nvsmi_device_v12.dtd about a GPU's state."""
    lines = ['<?xml version="1.0" ?>', f"<!-- {MARK} -->", "<nvidia_smi_log>"]
    lines.append(f"\t<driver_version>{data['driver_version']}</driver_version>")
    lines.append(f"\t<cuda_version>{data['cuda_version']}</cuda_version>")
    lines.append(f"\t<attached_gpus>{len(gpus)}</attached_gpus>")
    lines += [_xml_gpu(gpu) for gpu in gpus]
    return "\n".join([*lines, "</nvidia_smi_log>"]) + "\n"


def _xml_gpu(gpu: Row) -> str:
    active = set(gpu.get("slowdowns", ()))
    if gpu["utilization_percent"] == 0:
        active.add("gpu_idle")
    reasons = "".join(
        f"<clocks_event_reason_{name}>{'Active' if name in active else 'Not Active'}</clocks_event_reason_{name}>"
        for name in REASONS
    )
    devices = range(gpu.get("mig_devices", 0))
    instances = "".join(f"<mig_device><index>{index}</index></mig_device>" for index in devices)
    return XML_GPU.format(
        **{"recovery_action": "None", "fabric_state": "Completed" if gpu.get("nvlinks") else "N/A", **gpu},
        reasons=reasons,
        mig="Enabled" if devices else "Disabled",
        instances=instances or "None",
        running="".join(XML_PROCESS.format(**process) for process in gpu.get("processes", ())),
    )


REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
)
XML_GPU = """\
	<gpu id="{bus_id}">
		<product_name>{name}</product_name>
		<mig_mode><current_mig>{mig}</current_mig><pending_mig>{mig}</pending_mig></mig_mode>
		<mig_devices>{instances}</mig_devices>
		<serial>{serial}</serial>
		<uuid>{uuid}</uuid>
		<gpu_recovery_action>{recovery_action}</gpu_recovery_action>
		<performance_state>{pstate}</performance_state>
		<clocks_event_reasons>{reasons}</clocks_event_reasons>
		<fb_memory_usage><total>{memory_total_mib} MiB</total><used>{memory_used_mib} MiB</used></fb_memory_usage>
		<utilization><gpu_util>{utilization_percent} %</gpu_util></utilization>
		<ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
		<ecc_errors>
			<volatile>
				<sram_correctable>0</sram_correctable>
				<sram_uncorrectable_parity>0</sram_uncorrectable_parity>
				<sram_uncorrectable_secded>0</sram_uncorrectable_secded>
				<dram_correctable>{ecc_corrected}</dram_correctable>
				<dram_uncorrectable>{ecc_uncorrected}</dram_uncorrectable>
			</volatile>
		</ecc_errors>
		<remapped_rows>
			<remapped_row_corr>0</remapped_row_corr>
			<remapped_row_unc>0</remapped_row_unc>
			<remapped_row_pending>{remapped_pending}</remapped_row_pending>
			<remapped_row_failure>{remapped_failure}</remapped_row_failure>
		</remapped_rows>
		<temperature><gpu_temp>{temperature_c} C</gpu_temp></temperature>
		<gpu_power_readings>
			<power_state>{pstate}</power_state>
			<power_draw>{power_w:.2f} W</power_draw>
			<current_power_limit>{power_limit_w:.2f} W</current_power_limit>
		</gpu_power_readings>
		<clocks><sm_clock>{sm_mhz} MHz</sm_clock><mem_clock>{memory_mhz} MHz</mem_clock></clocks>
		<max_clocks><sm_clock>{sm_max_mhz} MHz</sm_clock></max_clocks>
		<fabric><state>{fabric_state}</state></fabric>
		<processes>{running}
		</processes>
	</gpu>"""
XML_PROCESS = """
			<process_info>
				<pid>{pid}</pid><type>C</type><process_name>{process_name}</process_name>
				<used_memory>{used_mib} MiB</used_memory>
			</process_info>"""
HEAD = """\
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
"""
GPU = """\
| {index:>3}  {name:<24}       On  |   {bus_id} Off | {ecc_uncorrected:>20} |
| N/A  {temperature_c:>3}C    {pstate:<3}         {power_w:>5.0f}W / {power_limit_w:>4}W \
| {memory_used_mib:>7}MiB / {memory_total_mib:>6}MiB | {utilization_percent:>6}%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""
PROCESSES = """\
| Processes:                                                                              |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
"""
PROCESS = "| {index:>4}   N/A  N/A {pid:>10}      C   {process_name:<35.35} {used_mib:>12}MiB |\n"
NO_PROCESS = "|  No running processes found                                                             |\n"


def table(data: Row, gpus: list[Row]) -> str:
    """The table that nvidia-smi shows without options."""
    driver, edge = data["driver_version"], f"+{'-' * WIDTH}+\n"
    versions = f"NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {data['cuda_version']}"
    head = time.strftime("%a %b %e %H:%M:%S %Y") + "\n" + edge
    head += f"| {MARK:<{WIDTH - 1}}|\n| {versions:<{WIDTH - 1}}|\n"
    rows = "".join(GPU.format(**{**gpu, "name": gpu["name"][:24]}) for gpu in gpus)
    running = "".join(PROCESS.format(**row) for row in processes(gpus)) or NO_PROCESS
    return head + HEAD + rows + "\n" + edge + PROCESSES + running + edge


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
