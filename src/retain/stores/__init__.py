"""Where memories live: one driver a kind of store, one suite of tests for all of them."""
