"""Run within the box with numpy alone (ml_dtypes names the types of arrays in frames), without torch or triton. Tests
can import it in any process."""
