"""Serve the labs' pages of the site, with the judge in a browser tab. This package imports the grader, tilescope and
widgets.site, which never import this package."""
