"""The rows of the table, by subject."""

from __future__ import annotations

FEATURES: dict[str, list[str]] = {
    "Signing in": [
        "Register a new phone",
        "Log in by code",
        "Log in again with the stored token",
        "Log in with a password beside the code",
        "Set, change and remove the password",
        "Confirm an e-mail address, and restore a password by it",
        "Log in by a QR code",
        "Approve a QR code of another device",
        "List devices and close the others",
        "Log out",
        "Move the account to another phone",
        "Delete the account",
        "Delete the account before the login",
        "Come back after the server restarts",
    ],
}


def check_rows(rows: set[str]) -> None:
    """Raises ValueError unless the cells' rows are the ones above, each known once."""
    known = [row for rows in FEATURES.values() for row in rows]
    if len(known) != len(set(known)):
        raise ValueError(f"rows that are there twice: {sorted({row for row in known if known.count(row) > 1})}")
    if unknown := rows - set(known):
        raise ValueError(f"cells without a row: {sorted(unknown)}")
    if empty := set(known) - rows:
        raise ValueError(f"rows without a cell: {sorted(empty)}")
