"""The Launch page: training, sweeps, evaluation."""
