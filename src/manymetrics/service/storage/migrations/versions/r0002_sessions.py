"""Sessions of the pages."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0002", "0001", None, None
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "sessions",
        sa.Column("token_hash", sa.String(64), primary_key=True),
        sa.Column("key_id", sa.String(40), sa.ForeignKey("keys.id", ondelete="CASCADE"), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
    )
    op.create_index("ix_sessions_key_id", "sessions", ["key_id"])
    op.create_index("ix_sessions_expires_at", "sessions", ["expires_at"])
