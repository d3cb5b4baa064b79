"""Data sets that come with scikit-learn, as patients for `hb produce` and `hb demo`."""

from collections.abc import Callable

from agents.clients.patient_files import TablePatients


def wdbc() -> TablePatients:
    """Breast cancer (Wisconsin): 569 patients, 30 numbers, benign or malignant."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    columns = {str(name): data.data[:, j].tolist() for j, name in enumerate(data.feature_names)}
    return TablePatients("wdbc", columns, [str(data.target_names[i]) for i in data.target])


DATASETS: dict[str, Callable[[], TablePatients]] = {"wdbc": wdbc}
