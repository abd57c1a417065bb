"""What runs within the box: numpy alone (ml_dtypes names the types of arrays that come in frames), no torch and no triton; importable in any process for tests."""
