"""Documents are viewed and downloaded."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Name the actions; the table stays as it is."""

    dependencies = [("audit", "0002_append_only")]

    operations = [
        migrations.AlterField(
            model_name="entry",
            name="action",
            field=models.CharField(
                choices=[('review.proposed', 'A decision was asked for'), ('review.viewed', 'A review was opened, with its conversation'), ('review.approved', 'Approved as it stood'), ('review.changed', 'Approved with a lower amount or another reason'), ('review.raised', 'Raised, so that somebody else must decide'), ('review.rejected', 'Rejected'), ('review.withdrawn', 'Withdrawn'), ('review.expired', 'Nobody decided in time, or the run ended'), ('review.refused', 'A try to decide was refused'), ('review.denied', 'A try to open or decide what is out of reach'), ('review.used', 'An approval was used up by what it allowed'), ('intent.begun', 'A charge or refund was written, not yet sent'), ('intent.joined', 'A call joined one that was on its way'), ('intent.sent', 'A try was begun at the processor'), ('intent.unknown', 'A try came to nothing that is known'), ('intent.succeeded', 'The processor did it'), ('intent.failed', 'The processor refused it'), ('intent.refused', 'The ledger refused to begin'), ('refunds.paused', 'All refunds were paused'), ('refunds.resumed', 'Refunds were let go on'), ('refunds.refused', 'A try to switch refunds was refused'), ('export.asked', 'An export was begun'), ('export.refused', 'An export was refused'), ('export.ready', "An export's file was made"), ('export.cancelled', 'An export was cancelled'), ('export.downloaded', "An export's file was handed out"), ('export.denied', 'A try to reach an export that is out of reach'), ('document.viewed', "A customer's document was opened"), ('document.downloaded', "A customer's document was handed out as a file"), ('document.denied', 'A try to reach a document that is out of reach'), ('session.begun', 'Somebody signed in'), ('session.ended', 'Somebody signed out'), ('session.refused', 'Signing in failed'), ('record.added', 'A row was added in the administration'), ('record.changed', 'A row was changed in the administration'), ('record.deleted', 'A row was deleted in the administration'), ('role.given', 'A role was made or got rights')],
                max_length=40,
            ),
        ),
    ]
