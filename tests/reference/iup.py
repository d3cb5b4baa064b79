"""IUP as the paper prints it (Fig. 3 and its footnotes): one instance at a time, plain Python.

Means are fractions, so that the printed running mean is exact and a tie is a tie.
"""

import math
from fractions import Fraction


class PaperIup:
    """Pseudocode of IUP for one local learner with known horizon."""

    def __init__(self, T, m, d, rules, c=1.0, weights=None, preferred=None):
        self.T, self.m, self.d, self.rules, self.c = T, m, d, rules, c
        self.weights = weights or [1.0] * rules
        self.preferred = preferred
        self.N = {}
        self.mean = {}

    def cube(self, x):
        return tuple(min(math.floor(value * self.m), self.m - 1) for value in x)

    def index(self, f, p):
        n = self.N.get((f, p), 0)
        if n == 0:
            return math.inf
        log = math.log(2 * self.rules * self.m**self.d * self.T**1.5)
        return float(self.mean[f, p]) + self.c * math.sqrt((2 / n) * (1 + 2 * log))

    def decide(self, x, seed):
        """Return (cube, rule, exploring)."""
        p = self.cube(x)
        g = [self.weights[f] * self.index(f, p) for f in range(self.rules)]
        top = [f for f in range(self.rules) if g[f] == max(g)]
        a = self.preferred if self.preferred in top else top[seed % len(top)]
        means = [self.mean.get((f, p), 0) for f in range(self.rules)]
        return p, a, means[a] != max(means)

    def learn(self, p, a, correct):
        n = self.N.get((a, p), 0)
        self.mean[a, p] = (self.mean.get((a, p), Fraction(0)) * n + int(correct)) / (n + 1)
        self.N[a, p] = n + 1


class PaperDoubling:
    """The doubling trick of the paper's footnote: a fresh IUP for each phase."""

    def __init__(self, first, alpha, d, rules, c=1.0):
        self.first, self.alpha, self.d, self.rules, self.c = first, alpha, d, rules, c
        self.j = 0
        self.left = 0
        self.phases = []

    def now(self):
        if self.left == 0:
            self.j += 1
            T = 2 ** (self.j - 1) * self.first
            m = math.ceil(round(T ** (1 / (2 * self.alpha + self.d)), 9))
            self.phases.append(PaperIup(T, m, self.d, self.rules, self.c))
            self.left = T
        return self.phases[-1]

    def step(self):
        self.left -= 1
