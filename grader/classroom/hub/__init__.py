"""Run JupyterHub for a class on one machine: its configuration, the files for students' servers, and the test that
drives it."""
