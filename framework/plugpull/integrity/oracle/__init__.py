"""Pure judgement of stamped data: what a disk may hold, and what it does hold."""
