"""Entries and links are only ever added: triggers refuse all else, and mark what is to be chained.

`ENABLE ALWAYS` keeps them awake in a session that plays a replica, where other triggers sleep.
"""

from django.db import migrations

REFUSE = """
CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is only ever added to: % is refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
"""
# By statement: one that would hit no row is refused, too.
KEEP = """
CREATE TRIGGER {table}_kept BEFORE UPDATE OR DELETE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER {table}_whole BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_kept;
ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_whole;
"""
MARK = """
CREATE FUNCTION audit_mark() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO audit_unlinked (entry_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER audit_entry_marked AFTER INSERT ON audit_entry
    FOR EACH ROW EXECUTE FUNCTION audit_mark();
ALTER TABLE audit_entry ENABLE ALWAYS TRIGGER audit_entry_marked;
"""
FREE = """
DROP TRIGGER audit_entry_marked ON audit_entry;
DROP TRIGGER audit_entry_kept ON audit_entry;
DROP TRIGGER audit_entry_whole ON audit_entry;
DROP TRIGGER audit_link_kept ON audit_link;
DROP TRIGGER audit_link_whole ON audit_link;
DROP FUNCTION audit_mark();
DROP FUNCTION audit_refuse();
"""


class Migration(migrations.Migration):
    """Make the triggers."""

    dependencies = [("audit", "0001_initial")]

    operations = [
        migrations.RunSQL(
            REFUSE
            + KEEP.format(table="audit_entry")
            + KEEP.format(table="audit_link")
            + MARK,
            FREE,
        )
    ]
