"""The paper's three experiments: ablation, comparison with baselines, and policy learning."""
