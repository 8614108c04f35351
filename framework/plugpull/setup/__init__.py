"""Prepares what plugpull needs before it can run: system packages, the Python environment, kernels to boot.

``place``, ``packages``, ``environment`` and ``launch`` run before the Python environment exists. They import only the
standard library and as little of it as possible, because every start of the command waits for them.
"""
