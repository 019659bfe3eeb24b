"""C++ of operators that are not structured."""

from gen.table import Row


def headers(row: Row) -> list[str]:
    return []


def generate(row: Row) -> str:
    raise NotImplementedError(row.func)


def registrations(row: Row) -> list[str]:
    raise NotImplementedError(row.func)
