"""`dashboard.runs.words` in templates."""

from django import template

from dashboard import markdown
from dashboard.notices.words import title
from dashboard.runs import words

register = template.Library()
register.filter(words.ago)
register.filter(words.axis_words)
register.filter(words.copies_words)
register.filter(words.duration)
register.filter(words.faults_words)
register.filter(words.figure)
register.filter(words.grid_words)
register.filter(words.link_class)
register.filter(words.model_words)
register.filter(words.number)
register.filter(words.recipe_words)
register.filter(words.schedule_name)
register.filter(words.splits_words)
register.filter(words.collectives_words)
register.filter(words.percent)
register.filter(words.size)
register.filter("markdown", markdown.html)
register.filter("notice_title", title)
