"""Whether the record of a scenario is whole, and whether its witnesses agree."""
