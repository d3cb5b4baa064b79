"""`hb bench pipeline`: the whole pipeline beside a raw relay and plain Faust agents (`peers`)."""
