"""Run JupyterHub for a class on one machine. This folder has its configuration, the files for students' servers, and a
test that drives a real hub."""
