"""An HTML report of machines and traces that any browser shows without a network.

`contents` collects the data as JSON values from `machine`, `traces` and `learning`; `page` writes
them into the template in `web`.
"""
