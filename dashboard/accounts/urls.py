from django.contrib.auth.views import LogoutView
from django.urls import path

from dashboard.accounts import openid_views, team_views, token_views, views

urlpatterns = [
    path("login/", views.Login.as_view(), name="login"),
    path("openid/start/", openid_views.start, name="openid-start"),
    path("openid/callback/", openid_views.callback, name="openid-callback"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("welcome/<str:token>/", views.welcome, name="welcome"),
    path("account/", token_views.account, name="account"),
    path("account/password/", views.password, name="password"),
    path("account/tokens/<int:token_id>/take-back/", token_views.take_back, name="token-take-back"),
    path("teams/", team_views.make_team, name="team-make"),
    path("teams/<int:team_id>/", team_views.team, name="team"),
    path("teams/<int:team_id>/invite/", team_views.invite, name="team-invite"),
    path("teams/<int:team_id>/invitations/<int:invitation_id>/take-back/", team_views.take_invitation_back,
         name="invitation-take-back"),
    path("teams/<int:team_id>/members/<int:user_id>/", team_views.member, name="team-member"),
    path("invited/<str:token>/", views.invited, name="invited"),
]
