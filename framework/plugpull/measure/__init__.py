"""Statistics of repeated measurements: intervals, tests, knees, groups, dips. Pure numbers, no history."""
