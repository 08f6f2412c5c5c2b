"""An HTML report of machines and traces that any browser shows without a network.

`page` collects the data as JSON values from `machine`, `traces` and `learning`, and writes them
into the template in `web`.
"""
