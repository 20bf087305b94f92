"""Keep which rule asked for a review, and what its reviewer is warned of."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Both with a default of the database: processes of the version before write rows without."""

    dependencies = [("reviews", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="review",
            name="rule",
            field=models.CharField(blank=True, db_default="", default="", max_length=60),
        ),
        migrations.AddField(
            model_name="review",
            name="flags",
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
    ]
