"""An issued document stays as it is: triggers refuse to change or delete one."""

from django.db import migrations

KEEP = """
CREATE FUNCTION receipts_document_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an issued document stays as it is: % is refused', TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER receipts_document_kept BEFORE UPDATE OR DELETE ON receipts_document
    FOR EACH ROW EXECUTE FUNCTION receipts_document_refuse();
"""
FREE = """
DROP TRIGGER receipts_document_kept ON receipts_document;
DROP FUNCTION receipts_document_refuse();
"""


class Migration(migrations.Migration):
    """Make the trigger."""

    dependencies = [("receipts", "0001_initial")]

    operations = [migrations.RunSQL(KEEP, FREE)]
