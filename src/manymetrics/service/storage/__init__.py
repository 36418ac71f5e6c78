"""The database: tables, transactions, migrations, backups."""
