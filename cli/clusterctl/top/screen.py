"""The live view on a terminal: nodes × GPUs as a heat map, redrawn once per interval."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop
from dataclasses import replace
from datetime import UTC, datetime
from typing import ClassVar

from clusterctl_infra.ledger import Ledger
from clusterctl_infra.outputs import Inventory
from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Static

from clusterctl.text.visible import visible_in_a_line
from clusterctl.top.board import Board
from clusterctl.top.frame import ORDERS, Cell, Line, gpu_lines, header, layout_for, node_line, sorted_states, title

INDENT = Cell(text="  ")
BAD = Style(color="bright_red", bold=True)
PLAIN = Style()
HEAT_STEPS = 20
INTERRUPTED = 130
"""The exit code."""
# From deep blue over green to warm yellow, dark enough for white digits.
_COLD, _WARM = (24, 34, 66), (178, 112, 0)
HEAT = tuple(
    Style(
        color="white",
        bgcolor=Color.from_rgb(
            *(low + (high - low) * step / HEAT_STEPS for low, high in zip(_COLD, _WARM, strict=True))
        ),
    )
    for step in range(HEAT_STEPS + 1)
)


def _style(heat: float | None, is_bad: bool) -> Style:
    if is_bad:
        return BAD
    return PLAIN if heat is None else HEAT[round(max(0.0, min(1.0, heat)) * HEAT_STEPS)]


def _visible(cell: Cell) -> Cell:
    return replace(cell, text=visible_in_a_line(cell.text))


class NodeMap(ScrollView, can_focus=True):
    """Lines drawn as they are scrolled into view; `cursor` is the line with the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Line] = []
        self.cursor: int | None = 0

    def show(self, lines: list[Line], *, cursor: int | None) -> None:
        """Draws these lines from now on."""
        self.lines, self.cursor = [tuple(_visible(cell) for cell in line) for line in lines], cursor
        width = max((sum(len(cell.text) for cell in line) for line in self.lines), default=0)
        self.virtual_size = Size(width, len(lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One line of the screen."""
        scroll_x, scroll_y = self.scroll_offset
        number = y + scroll_y
        if number >= len(self.lines):
            return Strip.blank(self.size.width, PLAIN)  # without a style NO_COLOR would end Textual (8.2)
        strip = Strip([Segment(cell.text, _style(cell.heat, cell.is_bad)) for cell in self.lines[number]])
        strip = strip.crop_extend(scroll_x, scroll_x + self.size.width, PLAIN)
        return strip.apply_style(Style(reverse=True)) if number == self.cursor else strip


class TopScreen(App[None]):
    """Nodes × GPUs; a key sorts, Enter opens a node, Escape closes it."""

    CSS = """
    #title { height: auto; text-style: bold; }
    #header { height: 1; color: $text-muted; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        # Textual (8.2) would advise Ctrl-Q and go on.
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("enter", "open", "open"),
        Binding("escape", "close", "back"),
        Binding("up,k", "move(-1)", show=False, priority=True),
        Binding("down,j", "move(1)", show=False, priority=True),
        Binding("pageup", "move(-20)", show=False, priority=True),
        Binding("pagedown", "move(20)", show=False, priority=True),
        *(Binding(key, f"sort('{key}')", order.word) for key, order in ORDERS.items()),
    ]

    def __init__(self, inventory: Inventory, board: Board, ledger: Ledger | None, *, interval_s: float) -> None:
        super().__init__()
        self._inventory = inventory
        self._board = board
        self._ledger = ledger
        self._interval_s = interval_s
        self._order = "n"
        self._cursor = 0
        self._opened: int | None = None
        self._crash: Exception | None = None

    def show(self, *, is_headless: bool = False, loop: AbstractEventLoop | None = None) -> int:
        """Shows the screen until the person ends it; returns the exit code.

        Raises an unexpected error once the terminal is as it was.
        """
        self.run(headless=is_headless, loop=loop)
        if self._crash is not None:
            raise self._crash
        return self.return_code or 0

    def _handle_exception(self, error: Exception) -> None:
        # Textual's own method (8.2) would show it with the values of all variables, and end as if all had gone well.
        self._crash = self._crash or error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        # What Textual does here, without printing the error: `show` raises it.
        self._close_messages_no_wait()

    def compose(self) -> ComposeResult:
        """Title, header, the map, the keys."""
        yield Static(id="title", markup=False)
        yield Static(id="header", markup=False)
        yield NodeMap()
        yield Footer()

    def on_mount(self) -> None:
        """Draws now, and once per interval."""
        self.query_one(NodeMap).focus()
        self.draw()
        self.set_interval(self._interval_s, self.draw)

    def on_resize(self) -> None:
        """Draws again, since other columns may fit now."""
        self.draw()

    def draw(self) -> None:
        """Draws one frame from the board as it is."""
        states, now_s = self._board.states(), time.monotonic()
        line = title(self._inventory, states, self._ledger, now=datetime.now(UTC), now_s=now_s)
        self.query_one("#title", Static).update(visible_in_a_line(line))
        node_map = self.query_one(NodeMap)
        if self._opened is not None:
            node_map.show([(INDENT, *line) for line in gpu_lines(states[self._opened], now_s)], cursor=None)
            return
        rows = sorted_states(states, self._order)
        gpus, names = self._inventory.gpus_per_node, [state.name for state in rows]
        layout = layout_for(gpus, names=names, columns=self.size.width)
        self.query_one("#header", Static).update(f"  {header(layout)}")
        lines = [(INDENT, *node_line(state, gpus, layout, now_s)) for state in rows]
        node_map.show(lines, cursor=self._cursor)

    def action_interrupt(self) -> None:
        """Ends the screen with the exit code that Ctrl-C gives every verb."""
        self.exit(return_code=INTERRUPTED)

    def action_sort(self, key: str) -> None:
        """Sorts the nodes by this key from now on."""
        self._order, self._cursor = key, 0
        self.draw()

    def action_move(self, step: int) -> None:
        """Moves the cursor, and the view with it."""
        node_map = self.query_one(NodeMap)
        self._cursor = max(0, min(len(self._board.states()) - 1, self._cursor + step))
        top, height = node_map.scroll_offset.y, max(1, node_map.size.height)
        if not top <= self._cursor < top + height:
            node_map.scroll_to(y=self._cursor - (height - 1 if step > 0 else 0), animate=False)
        self.draw()

    def action_open(self) -> None:
        """Shows the node under the cursor alone."""
        rows = sorted_states(self._board.states(), self._order)
        if self._opened is None and rows:
            self._opened = rows[self._cursor].slot
        self._show_opened()

    def action_close(self) -> None:
        """Shows all nodes again."""
        self._opened = None
        self._show_opened()

    def _show_opened(self) -> None:
        self.query_one("#header").display = self._opened is None
        self.query_one(NodeMap).scroll_to(y=0, animate=False)
        self.draw()
