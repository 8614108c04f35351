"""What has to be there before plugpull can run: system packages, the Python environment, kernels to boot.

``place``, ``packages``, ``environment`` and ``launch`` run before the Python environment exists: they import the
standard library only, and as little of it as they can, because every start of the command waits for them.
"""
