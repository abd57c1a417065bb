"""JupyterHub for a class on one machine: its configuration, what students' servers read, and the test that drives it."""
