"""What runs within the box: numpy and ml_dtypes alone, no torch and no triton; importable in any process for tests."""
