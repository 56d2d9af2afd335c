from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.accounts import token_views, views

urlpatterns = [
    path("login/", views.Login.as_view(), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("welcome/<str:token>/", views.welcome, name="welcome"),
    path("account/", token_views.account, name="account"),
    path("account/tokens/<int:token_id>/take-back/", token_views.take_back, name="token-take-back"),
]
