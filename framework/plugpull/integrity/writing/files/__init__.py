"""The program that writes and scans files on a mounted filesystem of the DUT."""
