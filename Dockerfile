# One image for web, workers, beat, the sandbox processor and the one-shot migrate.
FROM python:3.11-slim

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PATH=/srv/venv/bin:$PATH \
    DJANGO_SETTINGS_MODULE=config.settings.production \
    COUNTERSIGN_HOME=/srv/data

RUN useradd --system --create-home --home-dir /srv/data --shell /usr/sbin/nologin countersign
WORKDIR /srv/app

COPY requirements.lock ./
RUN python -m venv /srv/venv \
    && pip install --no-cache-dir --disable-pip-version-check \
       --require-hashes --no-deps -r requirements.lock

COPY . .
# Collecting needs settings, not secrets: these values live for this one command only.
RUN SECRET_KEY=collecting ALLOWED_HOSTS=localhost ALLOW_OFFLINE_MODEL=1 \
    AUDIT_KEY=for-collecting-static-files-only \
    DATABASE_URL=postgresql://nobody@localhost/none REDIS_URL=redis://localhost/0 \
    SANDBOX_URL=http://localhost \
    python manage.py collectstatic --no-input

USER countersign
EXPOSE 8000
CMD ["uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", \
     "--lifespan", "off", "--no-access-log", "--timeout-graceful-shutdown", "5"]
