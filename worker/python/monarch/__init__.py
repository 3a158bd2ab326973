"""Programs written for PyTorch Monarch, on a job of ours."""
