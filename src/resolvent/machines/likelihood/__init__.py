"""Machines and answers that came → how likely the machines held them, in sums that add up."""
