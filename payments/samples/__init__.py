"""What `sample_data` and `import_retail` load: people, files and the rules by which dates fall."""
