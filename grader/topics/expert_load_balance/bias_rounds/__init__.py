"""bias rounds."""
