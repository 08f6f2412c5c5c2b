"""Inference as an estimator: what scikit-learn does with one."""

import pickle

import pytest

import resolvent as rs
from resolvent.inference import MachineInference
from resolvent.worlds import House

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score


@pytest.fixture(scope="module")
def traces():
    return rs.collect(House(), episodes=60, seed=0)


def test_fit_infers_what_infer_does(traces):
    fitted = MachineInference(strategy="rpni", seed=3).fit(traces)
    assert fitted.machines_ == rs.infer(traces, strategy="rpni", seed=3).machines
    assert fitted.result_.options.seed == 3
    assert pickle.loads(pickle.dumps(fitted)).machines_ == fitted.machines_  # noqa: S301


def test_partial_fit_updates(traces):
    fitted = MachineInference().partial_fit(traces[:5]).partial_fit(traces[5:])
    assert fitted.machines_ == rs.infer(traces[:5]).update(traces[5:]).machines


def test_the_score_is_the_share_of_right_outputs(traces):
    fitted = MachineInference().fit(traces[:2])
    fresh = rs.collect(House(), episodes=20, seed=1)
    scores = fitted.machines_.score(fresh).values()
    right, steps = (
        sum(getattr(score, name) for score in scores) for name in ("all_right", "steps")
    )
    assert fitted.score(fresh) == right / steps < 1


def test_parameters_are_those_of_the_options(traces):
    inference = MachineInference(strategy="edsm")
    assert inference.get_params()["strategy"] == "edsm"
    assert inference.get_params().keys() == vars(rs.InferenceOptions()).keys() - {
        "_timing_is_default"
    }
    assert inference.set_params(strategy="rpni", effort=2.0) is inference
    assert repr(inference) == "MachineInference(strategy='rpni', effort=2.0)"
    with pytest.raises(rs.OptionError, match="states is no option of inference"):
        MachineInference(states=3)
    with pytest.raises(rs.OptionError, match="strategy"):
        MachineInference(strategy="fast").fit(traces)


def test_scikit_learn_clones_validates_and_searches(traces):
    inference = MachineInference(strategy="edsm").fit(traces)
    again = clone(inference)
    assert again.get_params() == inference.get_params()
    assert not hasattr(again, "machines_")
    assert cross_val_score(again, traces, cv=3).min() > 0.9
    search = GridSearchCV(MachineInference(), {"strategy": ["rpni", "edsm"]}, cv=2).fit(traces)
    assert search.best_params_["strategy"] in ("rpni", "edsm")
    assert search.best_estimator_.machines_.transition.states == 2
