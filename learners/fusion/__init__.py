"""How the ensemble learner fuses predictions: the paper's modes, ours, and their peers."""
