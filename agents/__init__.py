"""Who does what: the local learners, the ensemble learner, the worker and the clients."""
