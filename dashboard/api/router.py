"""The one router of the API: an address has one view for all its methods, whichever file they are in."""

from ninja import Router

router = Router()
