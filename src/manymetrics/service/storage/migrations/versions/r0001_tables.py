"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "0001", None, None, None
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables."""
    _tenants()
    _classifiers()
    op.create_table(
        "replies",
        sa.Column("id", sa.String(40), primary_key=True),
        _owner("tenant_id", "tenants.id"),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("request_hash", sa.String(64), nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.UniqueConstraint("tenant_id", "key"),
    )
    op.create_index("ix_replies_created_at", "replies", ["created_at"])


def _tenants() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("limits", sa.JSON, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
    )
    op.create_table(
        "keys",
        sa.Column("id", sa.String(40), primary_key=True),
        _owner("tenant_id", "tenants.id"),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("scopes", sa.String(100), nullable=False),
        sa.Column("note", sa.String(200), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT),
        sa.Column("revoked_at", MOMENT),
    )
    op.create_index("ix_keys_tenant_id", "keys", ["tenant_id"])
    op.create_table(
        "models",
        sa.Column("fingerprint", sa.String(64), primary_key=True),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("live_at", MOMENT),
    )


def _classifiers() -> None:
    op.create_table(
        "classifiers",
        sa.Column("id", sa.String(40), primary_key=True),
        _owner("tenant_id", "tenants.id"),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("current", sa.Integer, nullable=False),
        sa.Column("latest", sa.Integer, nullable=False),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.Column("settled_model", sa.String(64), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
    )
    op.create_index("classifiers_of_tenant", "classifiers", ["tenant_id", "id"])
    numbers = [sa.Column(name, sa.Float) for name in ("accuracy", "low", "high", "before")]
    op.create_table(
        "versions",
        _owner("classifier_id", "classifiers.id", primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("reason", sa.String(40), nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("examples", sa.Integer, nullable=False),
        sa.Column("labels", sa.Integer, nullable=False),
        sa.Column("tried", sa.Integer, nullable=False),
        *numbers,
        sa.Column("created_at", MOMENT, nullable=False),
    )
    op.create_table(
        "examples",
        sa.Column("id", sa.String(40), primary_key=True),
        _owner("classifier_id", "classifiers.id"),
        sa.Column("tenant_id", sa.String(40), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("label", sa.Text),
        sa.Column("added_in", sa.Integer, nullable=False),
        sa.Column("removed_in", sa.Integer),
    )
    op.create_index("examples_of_classifier", "examples", ["classifier_id", "id"])


def _owner(name: str, column: str, *, primary_key: bool = False) -> sa.Column[str]:
    return sa.Column(
        name, sa.String(40), sa.ForeignKey(column, ondelete="CASCADE"), nullable=False, primary_key=primary_key
    )
