"""The programs of docs/other-languages.md: they compile, and the Java one gets a diagnosis."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import orjson
from user_kit import ensemble, worker_process

from settings.loading import load_settings
from streams.broker.jars import class_path
from tests.conftest import need_tool

PAGE = Path(__file__).parents[2] / "docs/other-languages.md"
DECLARED = Path(__file__).parents[1] / "data/kgo"
CLIENT = "github.com/twmb/franz-go"


def program(language, folder, name):
    """Write the program of the page to a file."""
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = folder / name
    file.write_text(text)
    return file


def run(command, folder):
    process = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=250
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_the_java_program_compiles_and_gets_a_diagnosis(tmp_path, broker_address, prefix):
    javac, java = (need_tool(name, "default-jdk-headless") for name in ("javac", "java"))
    jars = class_path()
    run([javac, "-cp", jars, "-d", tmp_path, program("java", tmp_path, "Diagnose.java")], tmp_path)
    file = ensemble(tmp_path, broker_address, prefix.strip("."), partitions=3)
    with worker_process(file):
        topics = load_settings(file).topics.prefix
        path = os.pathsep.join([str(tmp_path), jars])
        output = run([java, "-cp", path, "Diagnose", broker_address, topics], tmp_path)
    diagnosis = orjson.loads(output.splitlines()[-1])
    assert diagnosis["label"] in ("benign", "malignant")
    assert set(diagnosis["learners"]) == {"imaging", "history"}


def test_the_go_program_is_in_order(tmp_path):
    """Types are checked against a declaration of the client; HB_VET_GO=1 fetches the client."""
    go = need_tool("go", "golang-go")
    program("go", tmp_path, "main.go")
    assert run([need_tool("gofmt", "golang-go"), "-e", "-l", "main.go"], tmp_path) == ""
    run([go, "mod", "init", "example.org/diagnose"], tmp_path)
    if os.environ.get("HB_VET_GO"):
        run([go, "get", f"{CLIENT}/pkg/kgo@v1.20.1"], tmp_path)
    else:
        shutil.copytree(DECLARED, tmp_path / "client/pkg/kgo")
        (tmp_path / "client/go.mod").write_text(f"module {CLIENT}\n")
        run(
            [go, "mod", "edit", f"-replace={CLIENT}=./client", f"-require={CLIENT}@v1.20.1"],
            tmp_path,
        )
    run([go, "vet", "."], tmp_path)
