"""The programs of docs/other-languages.md: they compile, and the Java one gets a diagnosis."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import orjson
import pytest
from user_kit import ensemble, worker_process

from settings.loading import load_settings
from streams.broker.jars import class_path

PAGE = Path(__file__).parents[2] / "docs/other-languages.md"


def program(language, folder, name):
    """Write the program of the page to a file."""
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = folder / name
    file.write_text(text)
    return file


def tool(name, how):
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed: {how}")
    return path


def run(command, folder):
    process = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=250
    )
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def test_the_java_program_compiles_and_gets_a_diagnosis(tmp_path, broker_address, prefix):
    javac, java = tool("javac", "apt install default-jdk-headless"), tool("java", "apt install jre")
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
    program("go", tmp_path, "main.go")
    assert run([tool("gofmt", "apt install golang-go"), "-e", "-l", "main.go"], tmp_path) == ""
    if not os.environ.get("HB_VET_GO"):
        return  # vetting compiles a Kafka client that has to be fetched: half a minute of two cores
    go = tool("go", "apt install golang-go")
    run([go, "mod", "init", "example.org/diagnose"], tmp_path)
    run([go, "get", "github.com/twmb/franz-go/pkg/kgo@v1.20.1"], tmp_path)
    run([go, "vet", "."], tmp_path)
