"""The labs' pages of the site: the judge in a browser tab. Uses the grader, tilescope and widgets.site; none of them uses it."""
