"""From a recorded history to verdicts, results.json and the other files of a run."""
