"""Data parallel training over real processes."""

import copy

import pytest
import torch

from course_utils.training import data_parallel as parallel
from course_utils.training.data_parallel import NextToken, launch, train

exactly = {"rtol": 0, "atol": 1e-12}


def alone():
    model = NextToken()
    return model, train(model)


@pytest.mark.parametrize("torchrun", [pytest.param(True, marks=pytest.mark.long), False])
def test_two_processes_train_as_one(torchrun):
    if torchrun and parallel.sys.platform == "win32":
        pytest.skip("torchrun's store is missing in torch for Windows")
    result, (one, norms) = launch(2, torchrun=torchrun), alone()
    assert result["states"].keys() == {"by hand", "DDP"}
    for state in result["states"].values():
        for name, weights in one.state_dict().items():
            torch.testing.assert_close(state[name], weights, **exactly)
    first, second = (own[0] for own in result["norms"])
    assert abs(first - second) > 0.01  # each worked on data of its own
    assert abs(first - norms[0]) > 0.001


def test_training_moves_the_weights():
    before = copy.deepcopy(NextToken().state_dict())
    after = alone()[0].state_dict()
    assert all((after[name] - before[name]).abs().max() > 1e-4 for name in before)


def test_shares_cover_the_global_batch():
    tokens = parallel.global_batch(3)
    shares = [tokens[rank::2] for rank in range(2)]
    assert torch.equal(torch.stack(shares, 1).flatten(0, 1), tokens)
    assert not torch.equal(tokens, parallel.global_batch(4))


def test_without_averaging_the_processes_drift_apart():
    models = [NextToken(), NextToken()]
    for rank, model in enumerate(models):
        train(model, rank, 2)
    assert (models[0].output.weight - models[1].output.weight).abs().max() > 1e-3


@pytest.mark.parametrize("processes", [0, 3])
def test_a_batch_that_cannot_be_shared_out_is_refused(processes):
    with pytest.raises(ValueError, match="cannot be shared out"):
        launch(processes)


def test_a_failing_process_is_reported(monkeypatch):
    monkeypatch.setattr(
        parallel, "_commands", lambda *_: [([parallel.sys.executable, "-c", "x"], {})]
    )
    with pytest.raises(RuntimeError, match="NameError"):
        launch(2)


def test_a_process_that_hangs_is_stopped(monkeypatch):
    endless = [parallel.sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(parallel, "_commands", lambda *_: [(endless, {})])
    with pytest.raises(RuntimeError, match="did not end within"):
        launch(2, seconds=0.5)
