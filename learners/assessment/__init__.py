"""How sure a diagnosis is: its chance, its track record, and whether it is an answer at all."""
