"""A rectangle of the screen."""

from __future__ import annotations


class Area:
    """Where a panel may draw: its first row and column, and the number of rows and columns, which may be 0."""

    __slots__ = ("column", "columns", "row", "rows")

    def __init__(self, row: int, column: int, rows: int, columns: int) -> None:
        self.row = row
        self.column = column
        self.rows = max(0, rows)
        self.columns = max(0, columns)

    @property
    def end(self) -> int:
        """The row after the last."""
        return self.row + self.rows

    def holds(self, row: int, column: int) -> bool:
        """Return whether a cell is inside."""
        return self.row <= row < self.end and self.column <= column < self.column + self.columns

    def __repr__(self) -> str:
        return f"Area(row={self.row}, column={self.column}, rows={self.rows}, columns={self.columns})"
