"""`hb bench engine`: the engine beside other stream processors, each a program in `peers`."""
