"""What people read of a run: HTML report, JUnit XML, live view. Reads results and history, decides nothing."""
