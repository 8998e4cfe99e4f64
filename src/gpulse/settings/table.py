"""Every setting: what it may be, how it is written, the tables of the file, and what only the environment sets."""

from __future__ import annotations

from ..errors import GpulseError
from ..model.catalog import GPU_METRICS, PROCESS_METRICS
from ..model.metric import Number
from ..present.theme import THEMES
from ..serving.settings import parse_address, parse_token_file
from ..sources.privacy import COMMANDS, USERS
from ..units import parse_duration
from ..value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Literal, TypeAlias

    Kind: TypeAlias = Literal["text", "flag", "integer", "number", "words", "file or flag"]
    Taken: TypeAlias = "tuple[Any, list[str]]"

_YES = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


class Setting(Value):
    """One setting of a table of the file, or with an empty `table` one that only the environment or an option sets.

    `choices` are the words it takes, `what` is what one of them is called. A list may be `empty` or not. `default` is what it is
    when nobody sets it; where that depends on the machine it is None, and `otherwise` says as text what happens then.
    `example` is what the template of the file shows for a setting without a default. `form` raises for a word that is wrong.
    """

    table: str
    key: str
    kind: Kind
    default: Any
    help: str
    flag: str = ""
    environ: str = ""
    choices: Sequence[str] = ()
    what: str = "value"
    low: float = 0.0
    high: float = float("inf")
    empty: bool = False
    example: Any = None
    otherwise: str = ""
    form: Callable[[str], object] | None = None

    def __post_init__(self) -> None:
        self.flag = self.flag or f"--{self.key.replace('_', '-')}"
        self.environ = self.environ or f"GPULSE_{self.table}_{self.key}".upper()

    @property
    def name(self) -> str:
        """The name as in serve.port."""
        return f"{self.table}.{self.key}" if self.table else self.key

    @property
    def normally(self) -> str:
        """What happens when nobody sets it, as text or as the value; empty where that is nothing."""
        if self.default is None or isinstance(self.default, str):
            return self.otherwise or self.default or ""
        return toml(self.default)

    def check(self, value: Any) -> Taken:
        """Return the value to take, None for the default, and a sentence for everything that is wrong with the one given.

        Of a list, only the words that are wrong are left out.
        """
        if self.kind == "flag":
            return (value, []) if isinstance(value, bool) else (None, [f"{shown(value)} is neither true nor false."])
        if self.kind == "words":
            return self._some_of(value)
        if self.kind in ("integer", "number"):
            return self._number(value)
        if self.kind == "file or flag" and isinstance(value, bool):
            return value, []
        if isinstance(value, str) and (not self.choices or value in self.choices):
            wrong = self._malformed(value)
            return (None, [wrong]) if wrong else (value, [])
        return None, [self._no_such(value) if self.choices else f"{shown(value)} is not a text."]

    def parse(self, text: str) -> Taken:
        """Return what a text of the environment means, and what is wrong with it: lists are separated by commas."""
        if self.kind == "words":
            return self.check([word for word in (part.strip() for part in text.split(",")) if word])
        if self.kind in ("flag", "file or flag") and text.strip().lower() in _YES:
            return _YES[text.strip().lower()], []
        if self.kind in ("integer", "number"):
            try:
                return self.check(int(text) if self.kind == "integer" else float(text))
            except ValueError:
                return None, [f"{shown(text)} is not {self._amount()}."]
        return self.check(text)

    def _number(self, value: Any) -> Taken:
        kinds = (int,) if self.kind == "integer" else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds):
            return None, [f"{shown(value)} is not {self._amount()}."]
        if not self.low <= value <= self.high:
            unit = " s" if self.what == "seconds" else ""
            return None, [f"{shown(value)}{unit} is not between {self.low:g} and {self.high:g}{unit}."]
        return (value if self.kind == "integer" else float(value)), []

    def _amount(self) -> str:
        return (
            "a number of seconds" if self.what == "seconds" else "an integer" if self.kind == "integer" else "a number"
        )

    def _some_of(self, value: Any) -> Taken:
        if not isinstance(value, list) or not (self.choices or all(isinstance(word, str) for word in value)):
            return None, [f"{shown(value)} is not a list of {self.what}s."]
        wrong = [self._no_such(word) for word in value if self.choices and word not in self.choices]
        wrong += [sentence for word in value if (sentence := self._malformed(word))]
        right = [word for word in value if (not self.choices or word in self.choices) and not self._malformed(word)]
        taken = list(dict.fromkeys(right))
        if not taken and not value and not self.empty:
            wrong.append(f"there must be at least one {self.what}.")
        return (taken if taken or (self.empty and not wrong) else None), wrong

    def _malformed(self, word: str) -> str:
        """Return what is wrong with a word that has to have a form, or an empty text."""
        try:
            if self.form is not None:
                self.form(word)
        except GpulseError as error:
            return str(error)
        return ""

    def _no_such(self, value: Any) -> str:
        from ..model.select import did_you_mean

        hint = did_you_mean(value, self.choices) if isinstance(value, str) else ""
        return f"unknown {self.what} {shown(value)}{hint}."


def shown(value: object) -> str:
    """Return a value as a sentence can hold it."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def toml(value: Any) -> str:
    """Return a value as the settings file holds it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {toml(each)}' for key, each in value.items())} }}"
    if isinstance(value, float):
        return f"{value:g}"
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    chars = [f"\\{char}" if char in '"\\' else char if char.isprintable() else f"\\u{ord(char):04x}" for char in text]
    return f'"{"".join(chars)}"'


COLUMNS = ("gpu", *PROCESS_METRICS)
PANELS = ("host", "charts", "processes")
CHARTS = tuple(
    key
    for key, metric in GPU_METRICS.items()
    if isinstance(metric, Number) and metric.kind == "gauge" and metric.cost != "static" and metric.group != "details"
)
DETAILS = tuple(key for key, metric in GPU_METRICS.items() if metric.group == "details")
SHORTEST, LONGEST = 0.1, 3600.0  # seconds between samples
PORT = 9440
MOST_PRICE = 1e12

# fmt: off
_SETTINGS = (
    Setting("serve", "bind", "text", "127.0.0.1", "Address to listen on", otherwise="127.0.0.1:9440, reachable only from this machine"),
    Setting("serve", "port", "integer", PORT, "Port to listen on; 0 for any free port", low=0, high=65535),
    Setting("serve", "unix_socket", "text", None, "Listen on a Unix socket that only this user can open", example="/run/user/1000/gpulse.sock"),
    Setting("serve", "token_file", "text", None, "Read the access token from a file, creating it if missing", example="/etc/gpulse/token", otherwise="a new token on every start"),
    Setting("serve", "allow_host", "words", None, "Additional host names to accept, separated by commas", what="name", example=["gpu-box.example.org"]),
    Setting("serve", "base_path", "text", "/", "URL path behind a reverse proxy, for example /gpulse/"),
    Setting("serve", "cert", "text", None, "TLS certificate (PEM); serves HTTPS", example="/etc/gpulse/box.pem"),
    Setting("serve", "key", "text", None, "Private key of the certificate", example="/etc/gpulse/box.key", otherwise="in the certificate file"),
    Setting("serve", "interval", "number", 1.0, "Time between samples, in seconds", what="seconds", low=SHORTEST, high=LONGEST),
    Setting("serve", "commands", "flag", True, "Show and store command lines of processes", flag="--no-commands"),
    Setting("serve", "history", "file or flag", True, "Record a history: true, false, or the file to write", flag="--history, --no-history"),
    Setting("serve", "metrics", "words", None, "More GPU metrics to sample, show, record and export: names in the group `details`, or all", choices=("all", *GPU_METRICS), what="metric", example=["power_draw_instant", "temperature_margin"]),
    Setting("serve", "processes_metrics", "flag", False, "Export per-process series in /metrics (high cardinality)"),
    Setting("serve", "owner_labels", "flag", False, "Label the series of each GPU in /metrics with its user, job, pod, namespace and container"),
    Setting("serve", "series_limit", "integer", 1000, "Most owners, and most processes, with labels of their own in /metrics within two hours", low=1, high=1_000_000),
    Setting("serve", "dcgm_names", "flag", False, "Also export DCGM_FI_* names in /metrics, for existing dashboards"),
    Setting("serve", "smi_names", "flag", False, "Also export nvidia_smi_* names in /metrics, as nvidia_gpu_exporter does"),
    Setting("serve", "otlp", "text", None, "Also push to an OpenTelemetry receiver (a collector, Prometheus, VictoriaMetrics), for example http://host:4318/v1/metrics", example="http://localhost:4318/v1/metrics"),
    Setting("serve", "access_log", "flag", False, "Log every request to standard error"),
    Setting("top", "interval", "number", 1.0, "Time between samples, in seconds", flag="--interval", what="seconds", low=SHORTEST, high=LONGEST),
    Setting("top", "columns", "words", ["gpu", "pid", "user", "type", "memory_used", "sm_utilization", "cpu_percent", "host_memory", "running_time", "command"], "Columns of the process list", flag="-", choices=COLUMNS, what="column"),
    Setting("top", "charts", "words", ["utilization", "sm_active", "memory_percent"], "Metrics to chart", flag="-", choices=CHARTS, what="chart metric"),
    Setting("top", "sort", "text", "memory_used", "Column to sort processes by", flag="-", choices=COLUMNS, what="column"),
    Setting("top", "falling", "flag", True, "Sort processes in falling order", flag="-"),
    Setting("top", "fahrenheit", "flag", False, "Show temperatures in °F instead of °C", flag="-"),
    Setting("top", "decimal", "flag", False, "Show sizes in decimal units (GB) instead of binary ones (GiB)", flag="-"),
    Setting("top", "panels", "words", list(PANELS), "Panels to show", flag="-", choices=PANELS, what="panel", empty=True),
    Setting("terminal", "theme", "text", "auto", "Color theme of all commands; auto follows the background of the terminal", flag="--theme", environ="GPULSE_THEME", choices=THEMES, what="theme"),
    Setting("cost", "price", "number", None, "Price of one kWh, to show the cost of energy", flag="--price", high=MOST_PRICE, example=0.3),
    Setting("cost", "gpu_price", "number", None, "Price of one GPU hour, to show the cost of GPU time", flag="--gpu-price", high=MOST_PRICE, example=2.5),
    Setting("cost", "carbon", "number", None, "Grams of CO2e per kWh, to show emissions", flag="--carbon", high=MOST_PRICE, example=380),
    Setting("cost", "currency", "text", "", "Currency of the prices, shown as it is", flag="-", example="EUR"),
    Setting("usage", "groups", "words", None, "Groups that `gpulse usage --by group` counts: a user belongs to the first of them", flag="-", what="group", example=["vision", "speech"], otherwise="the primary group of each user"),
    Setting("serving", "discover", "flag", True, "Look for model servers among this user's processes on the GPUs and ask them how they are doing", flag="-"),
    Setting("serving", "endpoints", "words", None, "More model servers to ask, also on other machines, or a `gpulse serve` there", flag="-", what="address", form=parse_address, example=["http://gpu2:8000"]),
    Setting("serving", "token_files", "words", None, "Files with the tokens of servers that ask for one, as HOST:PORT=FILE", flag="-", what="token file", form=parse_token_file, example=["gpu2:8000=/etc/gpulse/gpu2.token"]),
    Setting("privacy", "commands", "text", "full", "What is shown and stored of the processes of other users: their command lines (full), the program (program), or neither (none)", flag="-", choices=COMMANDS, what="word"),
    Setting("privacy", "users", "text", "name", "Whether other users are shown by name or by number", flag="-", choices=USERS, what="word"),
    Setting("privacy", "history_group", "text", None, "Group that may read the history of the machine; only in the machine's settings", flag="-", example="gpulse", otherwise="the group of the file"),
    # Only root's file counts (store/queue.py): a limit that everybody can change for themselves is none.
    Setting("queue", "longest_reservation", "text", "7d", "Maximum length of a reservation; longer ones end after that time", flag="-", form=parse_duration),
)
# Not in the file: a command that shows one line must not have to read it.
ENVIRONMENT = (
    Setting("", "source", "text", "auto", "Where samples come from", environ="GPULSE_SOURCE"),
    Setting("", "config", "text", None, "The settings file", environ="GPULSE_CONFIG", flag="--path (config)", otherwise="gpulse/config.toml in $XDG_CONFIG_HOME or ~/.config"),
    Setting("", "runs", "text", None, "Folder in which past runs are kept, or off", environ="GPULSE_RUNS", flag="-", otherwise="gpulse/runs in $XDG_STATE_HOME or ~/.local/state"),
    Setting("", "claims", "text", None, "Folder of the queue for GPUs and of the lock files by which jobs claim them", environ="GPULSE_CLAIMS", flag="-", otherwise="/var/tmp, and for locks /run/lock or /tmp"),
    Setting("", "presence", "text", None, "Folder in which running Monitors say how they are doing", environ="GPULSE_PRESENCE", flag="-", otherwise="gpulse in $XDG_RUNTIME_DIR, or /tmp/gpulse-UID"),
    Setting("", "project_variables", "text", None, "Environment variables from which the project of a process is taken if it has no GPULSE_PROJECT, separated by commas", environ="GPULSE_PROJECT_VARIABLES", flag="-", example="WANDB_PROJECT"),
    Setting("", "stacks", "flag", True, "Whether a Monitor samples the stacks of its program, to name the lines that keep the GPU waiting; 0 turns it off", environ="GPULSE_STACKS", flag="Monitor(stacks=False)"),
)
# fmt: on
TABLES: dict[str, dict[str, Setting]] = {}
for _setting in _SETTINGS:
    TABLES.setdefault(_setting.table, {})[_setting.key] = _setting
SERVE, TOP, TERMINAL = (TABLES[name] for name in ("serve", "top", "terminal"))
