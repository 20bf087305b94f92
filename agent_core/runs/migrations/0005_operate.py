from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0004_message_edits'),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='run',
            options={'ordering': ('created_at',), 'permissions': (('view_all_runs', 'Can see the runs of every staff member'), ('measure_runs', 'Can let a run go on where it would stop, to measure'), ('operate', 'Can see how all work stands and send work on its way again'))},
        ),
    ]
