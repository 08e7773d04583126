"""What a background process does from start to end, one module per kind of job. Workers compose the stages."""
