"""The decompositions of `forks.linalg` in plain Python, number by number, whose bits the compiled ones have.

Python rounds each product, sum, quotient and root by itself, on every processor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from forks.arrays import FloatArray
from forks.linalg.vectors import EPSILON, NEGLIGIBLE

Vector = list[float]
Matrix = list[Vector]


def dot(u: Sequence[float], v: Sequence[float], start: int, stop: int) -> float:
    whole = stop - (stop - start) % 8
    sums = [0.0] * 8
    for i in range(start, whole):
        sums[(i - start) % 8] += u[i] * v[i]
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [a + b for a, b in zip(sums[:half], sums[half:], strict=True)]
    total = sums[0]
    for i in range(whole, stop):
        total += u[i] * v[i]
    return total


def scale_of(matrix: FloatArray) -> float:
    largest = float(np.abs(matrix).max(initial=0.0))
    scale = 1.0
    while largest and scale > largest:
        scale /= 2.0
    while largest and scale * 2.0 <= largest:
        scale *= 2.0
    return scale


def symmetric_eigen(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    n, scale = len(matrix), scale_of(matrix)
    A = [[float(matrix[max(i, j), min(i, j)]) / scale for j in range(n)] for i in range(n)]
    d, e, reflections = tridiagonal(A)
    Q = [[float(i == j) for j in range(n)] for i in range(n)]
    for i, v, half in reflections:
        for j in range(i):
            along = 0.0
            for r in range(i):
                along += v[r] * Q[r][j]
            along *= -1.0 / half
            for r in range(i):
                Q[r][j] += v[r] * along
    vectors = [[Q[j][i] for j in range(n)] for i in range(n)]
    diagonalize(d, e, vectors)
    order = sorted(range(n), key=lambda i: d[i])
    return np.array([d[i] for i in order]) * scale, np.array([vectors[i] for i in order]).reshape(n, n).T


def tridiagonal(A: Matrix) -> tuple[Vector, Vector, list[tuple[int, Vector, float]]]:
    """The diagonal, what is beside it, and the reflections (row, vector, half its squared length)."""
    n = len(A)
    e = [0.0] * n
    reflections: list[tuple[int, Vector, float]] = []
    for i in range(n - 1, 0, -1):
        v = A[i][:i]
        tail = dot(v, v, 0, i - 1)
        if tail <= NEGLIGIBLE:
            e[i - 1] = v[-1]
            continue
        first = v[-1]
        length = math.sqrt(tail + first * first)
        half = tail + first * first + abs(first) * length
        e[i - 1] = -length if first > 0.0 else length
        v[-1] = first - e[i - 1]
        reflections.insert(0, (i, v, half))
        product = [0.0] * i
        for r in range(i):
            for j in range(i):
                product[j] += v[r] * A[r][j]
        product = [number / half for number in product]
        along = dot(product, v, 0, i) / (2.0 * half)
        w = [number - along * other for number, other in zip(product, v, strict=True)]
        for r in range(i):
            for j in range(i):
                A[r][j] -= v[r] * w[j] + w[r] * v[j]
    return [A[i][i] for i in range(n)], e, reflections


def diagonalize(d: Vector, e: Vector, rows: Matrix) -> None:
    least = EPSILON * max((abs(a) + abs(b) for a, b in zip(d, e, strict=True)), default=0.0)
    first = 0
    while first < len(d) - 1:
        last = first
        while last < len(d) - 1 and abs(e[last]) > least:
            last += 1
        if last == first:
            first += 1
            continue
        apart = (d[first + 1] - d[first]) / (2.0 * e[first])
        length = math.sqrt(apart * apart + 1.0)
        shift = e[first] / (apart + length if apart >= 0.0 else apart - length)
        g, sine, cosine, p = d[last] - d[first] + shift, 1.0, 1.0, 0.0
        for i in range(last - 1, first - 1, -1):
            f, b = sine * e[i], cosine * e[i]
            if f * f + g * g <= NEGLIGIBLE:
                e[i + 1] = e[last] = 0.0
                d[i + 1] -= p
                break
            e[i + 1] = length = math.sqrt(f * f + g * g)
            sine, cosine = f / length, g / length
            g = d[i + 1] - p
            r = (d[i] - g) * sine + 2.0 * cosine * b
            p = sine * r
            d[i + 1] = g + p
            g = cosine * r - b
            above, below = rows[i], rows[i + 1]
            rows[i + 1] = [sine * a + cosine * b for a, b in zip(above, below, strict=True)]
            rows[i] = [cosine * a - sine * b for a, b in zip(above, below, strict=True)]
        else:
            d[first] -= p
            e[first], e[last] = g, 0.0


def least_squares(A: FloatArray, B: FloatArray, cutoff: float) -> FloatArray:
    scale, scale_of_right = scale_of(A), scale_of(B)
    columns, right = padded((A.T / scale).tolist()), padded((B.T / scale_of_right).tolist())
    n, m = len(columns), len(A)
    pivots, rank = list(range(n)), 0
    left = [dot(column, column, 0, m) for column in columns]
    summed = list(left)
    estimates: tuple[float, float, Vector, Vector] | None = None
    for k in range(min(n, m)):
        longest = max(range(k, n), key=lambda j: left[j])
        for each in (pivots, left, summed):
            swap(each, k, longest)
        columns[k], columns[longest] = columns[longest], columns[k]
        vector = [0.0] * k + columns[k][k:]
        diagonal, half = reflection(vector, k, m)
        if half == 0.0:
            break
        estimates = with_column(estimates, columns[k][:k], diagonal)
        if estimates[0] < cutoff * estimates[1]:
            break
        columns[k][k], rank = diagonal, k + 1
        for row in (*columns[rank:], *right):
            reflect(row, vector, k, half)
        for j in range(rank, n):
            left[j] -= columns[j][k] * columns[j][k]
            if left[j] < 2.0**-26 * summed[j]:
                left[j] = summed[j] = dot(columns[j], columns[j], k + 1, m)
    upper = padded([[columns[j][i] if i <= j else 0.0 for j in range(n)] for i in range(rank)])
    X = np.zeros((n, len(right)))
    for c, row in enumerate(right):
        y = row[:rank] + [0.0] * (n + -n % 8 - rank)
        if rank == n:
            back_substitute(upper, y)
        else:
            shortest(upper, y, n)
        for j in range(n):
            X[pivots[j], c] = y[j] / scale * scale_of_right
    return X


def padded(rows: Matrix) -> Matrix:
    return [row + [0.0] * (-len(row) % 8) for row in rows]


def swap(entries: list[Any], i: int, j: int) -> None:
    entries[i], entries[j] = entries[j], entries[i]


def reflection(x: Vector, first: int, stop: int) -> tuple[float, float]:
    squared = dot(x, x, first, stop)
    if squared <= NEGLIGIBLE:
        return 0.0, 0.0
    length = math.sqrt(squared)
    half = squared + abs(x[first]) * length
    reflected = -length if x[first] > 0.0 else length
    x[first] -= reflected
    return reflected, half


def reflect(row: Vector, vector: Vector, first: int, half: float) -> None:
    first -= first % 8
    along = dot(row, vector, first, len(row)) / half
    for j in range(first, len(row)):
        row[j] -= along * vector[j]


def back_substitute(upper: Matrix, x: Vector) -> None:
    for k in range(len(upper) - 1, -1, -1):
        x[k] /= upper[k][k]
        for i in range(k):
            x[i] -= x[k] * upper[i][k]


def shortest(upper: Matrix, z: Vector, n: int) -> None:
    rows, vectors = [list(row) for row in upper], []
    for i, row in enumerate(rows):
        vector = [0.0] * i + row[i:]
        diagonal, half = reflection(vector, i, len(row))
        vectors.append((vector, half))
        for below in rows[i + 1 :]:
            reflect(below, vector, i, half)
        z[i] = (z[i] - dot(row, z, 0, i)) / diagonal
    for i in range(len(rows) - 1, -1, -1):
        reflect(z, vectors[i][0], i, vectors[i][1])


def with_column(
    estimates: tuple[float, float, Vector, Vector] | None, above: Vector, diagonal: float
) -> tuple[float, float, Vector, Vector]:
    """Estimates of the smallest and the largest singular value, with their left vectors."""
    if estimates is None:
        return abs(diagonal), abs(diagonal), [1.0], [1.0]
    low, high, lowest, highest = estimates
    k = len(above)
    larger, sine, cosine = largest_of_two(low, dot(above, lowest, 0, k), diagonal)
    low = low * (abs(diagonal) / larger) if larger > 0.0 else 0.0
    lowest = [number * -cosine for number in lowest] + [sine]
    high, sine, cosine = largest_of_two(high, dot(above, highest, 0, k), diagonal)
    return low, high, lowest, [number * sine for number in highest] + [cosine]


def largest_of_two(estimate: float, along: float, diagonal: float) -> tuple[float, float, float]:
    first, both, second = estimate * estimate + along * along, along * diagonal, diagonal * diagonal
    apart = math.sqrt((first - second) * (first - second) + 4.0 * both * both)
    if first >= second:
        sine, cosine = (first - second + apart) / 2.0, both
    else:
        sine, cosine = both, (second - first + apart) / 2.0
    length = math.sqrt(sine * sine + cosine * cosine)
    if length == 0.0:
        return math.sqrt(first), 1.0, 0.0
    return math.sqrt((first + second + apart) / 2.0), sine / length, cosine / length
