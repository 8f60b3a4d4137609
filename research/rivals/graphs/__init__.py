"""Learners of the labels of a graph's nodes; two of them, OKSG and AKSG, query labels selectively.

An event is the number of a node. A learner is made from the graph's kernel matrix. Its method `queries_label`
decides, before the label is known, whether to query it; a label that is not queried is not learned, and
leaves the learner unchanged.

>>> import numpy as np
>>> from scipy.sparse import csr_array
>>> from research.rivals.graphs import AKSG, laplacian_kernel, normalised
>>> path = csr_array(np.eye(6, k=1) + np.eye(6, k=-1))
>>> learner = AKSG(normalised(laplacian_kernel(path, ridge=0.1)))
>>> labels = [-1, -1, -1, 1, 1, 1]
>>> for node in (0, 5, 1, 4, 2, 3):
...     if learner.queries_label(node):
...         loss = learner.learn_one(node, labels[node])
>>> np.sign(learner.predict_many(range(6))).tolist() == labels
True

References
----------
Herbster and Pontil, Prediction on a Graph with a Perceptron, NIPS 2006 (GPA). Yang and Li's paper on adaptive
online kernel sampling for the nodes of a graph (OKL, OKSG, AKSG), whose equations and algorithms are named in
each learner.
"""

from research.rivals.graphs.aksg import AKSG
from research.rivals.graphs.gpa import GPA
from research.rivals.graphs.kernel import laplacian_kernel, normalised
from research.rivals.graphs.okl import OKL
from research.rivals.graphs.oksg import OKSG

__all__ = ["AKSG", "GPA", "OKL", "OKSG", "laplacian_kernel", "normalised"]
