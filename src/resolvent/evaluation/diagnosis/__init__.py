"""Diagnosis: find properties of traces that prevent machines from holding on new traces.

Input: traces, or the counts of a replay. Output: findings, each with a severity and advice.
"""
