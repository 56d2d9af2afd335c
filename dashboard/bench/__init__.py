"""What the product promises, measured: each bench is a module with `HELP` and `run(options) -> dict` of plain numbers.

They are started by `manage.py bench NAME`, use a stack of their own in a folder of their own, and look at
it as a person does, through a browser.
"""
