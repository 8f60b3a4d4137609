"""The mathematics of FORKS, one part a module, each beside its equation.

Moments and kernels; KOGD (stage 1); SJLT, sketch, TISVD and feature map (the kernel of stage 2); Online
Newton Step; and the carry-over of its state from one feature map to the next.
"""
