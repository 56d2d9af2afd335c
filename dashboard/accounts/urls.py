from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.accounts import views

urlpatterns = [
    path("login/", views.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("welcome/<str:token>/", views.welcome, name="welcome"),
]
