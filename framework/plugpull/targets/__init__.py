"""What a load, a stamped write or a check works on."""
