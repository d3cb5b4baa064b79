"""`hb bench pipeline`: compares the pipeline with a raw relay and plain Faust (`peers`)."""
