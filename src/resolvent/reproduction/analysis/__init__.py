"""Records of runs → tables, figures and pages, with the figures of the paper beside them."""
