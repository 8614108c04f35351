"""The bench of a real DUT: this machine, or one behind ssh."""
