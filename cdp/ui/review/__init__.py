"""The query workbench: documents beside their queries, decisions about single queries, filters before training."""
