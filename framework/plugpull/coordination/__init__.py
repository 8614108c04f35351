"""How plugpull processes on one machine share benches and restore what a killed one left off."""
