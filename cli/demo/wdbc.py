"""Data sets that come with scikit-learn, as patients for `hb produce` and `hb demo`."""

from collections.abc import Callable

from agents.clients.patient_files import TablePatients


def wdbc() -> TablePatients:
    """Breast cancer (Wisconsin): 569 patients, 30 numbers, benign or malignant."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    columns = {str(name): data.data[:, j].tolist() for j, name in enumerate(data.feature_names)}
    return TablePatients("wdbc", columns, [str(data.target_names[i]) for i in data.target])


GAP_EVERY = 25


def with_gaps(whole: TablePatients) -> tuple[TablePatients, frozenset[str]]:
    """Return the same patients, some without one of their values, and the ids of those.

    Of every 25 one has a gap, each in another feature.
    """
    names, labels = list(whole.patients.columns), whole.patients.labels
    columns = {name: list(values) for name, values in whole.patients.columns.items()}
    ids = [f"{whole.name}-{row}" for row in range(len(whole.patients))]
    for turn, row in enumerate(range(0, len(ids), GAP_EVERY)):
        columns[names[turn % len(names)]][row] = None
    return TablePatients(whole.name, columns, labels, ids), frozenset(ids[::GAP_EVERY])


DATASETS: dict[str, Callable[[], TablePatients]] = {"wdbc": wdbc}
