"""The public namespace. A name that is added or taken away shows here, and in the changelog."""

import resolvent as rs


def test_the_public_names():
    assert sorted(rs.__all__) == [
        "AugmentObservation",
        "ClusterError",
        "ContradictoryTraces",
        "DamagedFile",
        "Diagnosis",
        "Discretise",
        "EdgeRewardMachine",
        "Evidence",
        "Explorer",
        "Finding",
        "HeldOut",
        "InferenceResult",
        "Knowledge",
        "LabelTiming",
        "Labelling",
        "Learned",
        "Limits",
        "Machine",
        "MachinePair",
        "Machines",
        "MissingExtra",
        "ModelError",
        "Noise",
        "OptionError",
        "Options",
        "OutOfMemory",
        "Plan",
        "ResolventError",
        "ResumeWarning",
        "RewardMachine",
        "Score",
        "ShapeReward",
        "Solved",
        "SpaceWarning",
        "StorageError",
        "Strategy",
        "TableWarning",
        "TimeLimitReached",
        "TooLarge",
        "Trace",
        "TraceError",
        "TraceFolder",
        "TraceSet",
        "TransitionMachine",
        "UNSEEN",
        "VectorAugmentObservation",
        "VectorShapeReward",
        "baselines",
        "collect",
        "diagnose",
        "evidence",
        "held_out",
        "infer",
        "is_isomorphic",
        "is_minimal",
        "load",
        "plan",
        "q_learning",
        "read_log",
        "read_reward_machine",
        "read_table",
        "read_traces",
        "report",
        "scan_traces",
        "solve",
        "to_dot",
        "to_mealy_dot",
        "to_mermaid",
        "to_png",
        "to_svg",
        "to_text",
    ]


def test_every_public_name_is_there_and_documented():
    for name in rs.__all__:
        assert getattr(rs, name).__doc__, name


def test_the_version_is_the_packages():
    assert rs.__version__.count(".") >= 2
