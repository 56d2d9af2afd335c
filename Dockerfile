FROM python:3.11-slim

WORKDIR /app
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 DJANGO_SETTINGS_MODULE=dashboard.settings

COPY requirements.lock .
RUN pip install --disable-pip-version-check -r requirements.lock

COPY . .
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && python -m trainer.trace.packer.build \
    && apt-get purge -y --auto-remove gcc libc6-dev && rm -rf /var/lib/apt/lists/*

# Not root: a run's ranks are the user's own code and need no rights but the real-time class, which compose grants.
RUN useradd --create-home --uid 1000 lockstep && install -d -o lockstep -m 700 /state
USER lockstep
EXPOSE 8000
CMD ["python", "-m", "dashboard.stack.serve", "--host", "0.0.0.0", "--port", "8000"]
