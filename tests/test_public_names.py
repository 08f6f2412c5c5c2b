"""The public namespace. A name that is added or taken away shows here, and in the changelog."""

import resolvent as rs


def test_the_public_names():
    assert sorted(rs.__all__) == [
        "AugmentObservation",
        "Basis",
        "ContradictoryTraces",
        "Discretizer",
        "Evidence",
        "Experiment",
        "Explorer",
        "InferenceOptions",
        "InferenceResult",
        "LabelTiming",
        "LabelingFunction",
        "Machine",
        "MachinePair",
        "Machines",
        "Noise",
        "OptionError",
        "Plan",
        "ResolventError",
        "RewardMachine",
        "Solution",
        "Trace",
        "TraceDataset",
        "TraceError",
        "TraceSet",
        "TransitionMachine",
        "UNSEEN",
        "collect",
        "diagnose",
        "evidence",
        "holdout_score",
        "infer",
        "is_isomorphic",
        "load",
        "plan",
        "q_learning",
        "read_log",
        "read_table",
        "read_traces",
        "report",
        "scan_traces",
        "solve",
    ]


def test_every_public_name_exists_and_is_documented():
    for name in rs.__all__:
        assert getattr(rs, name).__doc__, name


def test_the_version_is_that_of_the_package():
    assert rs.__version__.count(".") >= 2
