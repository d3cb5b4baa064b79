"""The paper's evaluation (its section VIII), with the learners that the product runs."""
