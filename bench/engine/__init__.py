"""`hb bench engine`: compares the engine with other stream processors (programs in `peers`)."""
