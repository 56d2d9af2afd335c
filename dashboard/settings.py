"""Django's settings. What an operator can change comes through `dashboard.conf`."""

from __future__ import annotations

import hashlib

import dj_database_url
from csp.constants import NONCE, NONE, SELF

from dashboard.conf import ROOT, load
from dashboard.storage import kept_storage

CONF = load()

SECRET_KEY = CONF.secret_key()
DEBUG = CONF.debug
ALLOWED_HOSTS = CONF.allowed_hosts
CSRF_TRUSTED_ORIGINS = CONF.origins
HTTPS = any(origin.startswith("https://") for origin in CONF.origins)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "ninja",  # for its static files alone
    "channels",
    "dashboard",
    "dashboard.accounts",
    "dashboard.runs",
    "dashboard.comments",
    "dashboard.notices",
    "dashboard.live",
]

MIDDLEWARE = [
    "dashboard.operating.durations.Durations",
    "dashboard.logs.RunOfRequest",
    "django.middleware.security.SecurityMiddleware",
    "dashboard.static_files.StaticFiles",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "dashboard.urls"
ASGI_APPLICATION = "dashboard.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
            ],
            "builtins": ["django.templatetags.static"],
        },
    }
]

# Several processes write to SQLite at once. WAL lets readers go on while one writes; IMMEDIATE takes
# the write lock when a transaction begins, since a read that turns into a write fails at once instead
# of waiting; the time-out is how long a writer waits for the others.
if CONF.database_url:
    DATABASES = {"default": dj_database_url.parse(CONF.database_url, conn_max_age=60)}
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(CONF.home / "lockstep.sqlite3"),
            "OPTIONS": {
                "timeout": 20,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON;",
            },
        }
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Only ticks go through the channel layer: it drops silently when full, so it never carries data.
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [CONF.redis_url or "redis://127.0.0.1:6379/0"], "prefix": "lockstep:tick"},
    }
}

AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
if CONF.oidc_issuer:
    AUTHENTICATION_BACKENDS.append("dashboard.accounts.openid.Backend")
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "runs"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

SESSION_COOKIE_NAME = "lockstep_session"
CSRF_COOKIE_NAME = "lockstep_csrf"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
# Where https is the only way in, browsers are told to keep to it and http leads there, but for whoever asks after the server's
# health from inside. A list of preloaded names would hold for a whole domain: that is its owner's to decide.
SECURE_SSL_REDIRECT = HTTPS and all(origin.startswith("https://") for origin in CONF.origins)
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_HSTS_SECONDS = 31_536_000 if SECURE_SSL_REDIRECT else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_SSL_REDIRECT
SILENCED_SYSTEM_CHECKS = ["security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"  # a share link's token must not travel to other sites
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_048_576
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, "'unsafe-inline'"],  # Plotly sets styles on its elements
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

STATICFILES_DIRS = [ROOT / "static"]


def _static_version() -> str:
    """Changes when any static file does, so that a browser may keep what it has for ever."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "static").rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(ROOT)}:{path.stat().st_mtime_ns}:{path.stat().st_size};".encode())
    return digest.hexdigest()[:12]


# ES modules import each other by relative paths, which stay inside the versioned folder.
STATIC_URL = f"/static/{_static_version()}/"
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_MAX_AGE = 0 if DEBUG else 31_536_000

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    **kept_storage(CONF.storage),
}

LANGUAGE_CODE = "en"
USE_I18N = False
TIME_ZONE = "UTC"
USE_TZ = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name}: {message}", "style": "{"},
        "json": {"()": "dashboard.logs.JsonLines"},
    },
    "filters": {"discretion": {"()": "dashboard.discretion.HideTokens"}, "run": {"()": "dashboard.logs.AddRun"}},
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": CONF.log_format, "filters": ["discretion", "run"]},
    },
    "root": {"handlers": ["console"], "level": "INFO"},
}
