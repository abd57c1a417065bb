"""Serve the labs' pages of the site, with the judge in a browser tab. Uses the grader, tilescope and widgets.site,
and none of them uses it."""
