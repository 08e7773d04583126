"""Results: names of runs, one row per recipe and benchmark, comparisons with their tests, and tables like a paper's."""
