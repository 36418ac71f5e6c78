"""The first tables. A new database gets all tables at once, so that nothing is left to do here."""

revision, down_revision, branch_labels, depends_on = "0001", None, None, None


def upgrade() -> None:
    """No database is without these tables."""
