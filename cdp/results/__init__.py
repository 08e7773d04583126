"""What became of runs, read and never written: names, rows, comparisons with their tests, tables like a paper's."""
