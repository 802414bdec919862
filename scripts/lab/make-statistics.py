"""Reference values for the lab's statistics, from numpy, scipy and scikit-learn.

Run:  python scripts/lab/make-statistics.py   (needs numpy, scipy, scikit-learn)
Writes test/lab/fixtures/statistics/reference.json, which the tests carry. Everything is drawn from fixed seeds.
"""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.calibration import _sigmoid_calibration
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, roc_auc_score

OUT = Path(__file__).resolve().parents[2] / "test/lab/fixtures/statistics/reference.json"


def rounded(values, digits=6):
    return np.round(np.asarray(values, dtype=float), digits)


def auroc_cases(rng):
    cases = []
    for count, levels in [(12, None), (60, None), (200, 7), (40, 2)]:
        labels = rng.integers(0, 2, count)
        labels[:2] = [0, 1]
        scores = rng.normal(size=count) + 0.8 * labels
        scores = rounded(scores) if levels is None else np.floor(scores * levels / 4)
        cases.append({"scores": scores.tolist(), "labels": labels.tolist(), "auroc": roc_auc_score(labels, scores)})
    return cases


def summary_cases(rng):
    cases = []
    for count in [1, 2, 5, 100]:
        values = rounded(rng.normal(3, 2, count))
        cases.append(
            {
                "values": values.tolist(),
                "mean": values.mean(),
                "deviation": values.std(),
                "sampleDeviation": values.std(ddof=1) if count > 1 else None,
                "quantiles": {str(q): np.quantile(values, q) for q in [0, 0.025, 0.3, 0.5, 0.975, 1]},
            }
        )
    return cases


def proportion_cases():
    cases = []
    for count, of in [(0, 5), (5, 5), (3, 10), (1, 1), (2, 100), (50, 100), (999, 1000), (0, 1), (17, 4000)]:
        result = stats.binomtest(count, of)
        wilson = result.proportion_ci(method="wilson")
        exact = result.proportion_ci(method="exact")
        cases.append({"count": count, "of": of, "wilson": [wilson.low, wilson.high], "exact": [exact.low, exact.high]})
    return cases


def beta_cases():
    triples = [(0.1, 2, 3), (0.5, 0.5, 0.5), (0.9, 20, 4), (0.01, 1, 200), (0.999, 300, 2), (0.3, 50, 120)]
    return [{"x": x, "a": a, "b": b, "cumulative": stats.beta.cdf(x, a, b)} for x, a, b in triples]


def holm_cases():
    """Holm's method as its definition has it; scipy has no step-down correction that keeps the family-wise error."""
    cases = []
    for values in [[0.01, 0.04, 0.03], [0.5, 0.001], [0.02, 0.02, 0.02, 0.9], [0.2]]:
        order = np.argsort(values, kind="stable")
        adjusted = np.empty(len(values))
        adjusted[order] = np.minimum(1, np.maximum.accumulate(np.asarray(values)[order] * np.arange(len(values), 0, -1)))
        cases.append({"values": values, "adjusted": adjusted.tolist()})
    return cases


def logistic_cases(rng):
    cases = []
    for count, width, c, scale, shift in [(40, 3, 1, 1, 0), (60, 5, 0.05, 1, 2), (30, 20, 1, 3, -5), (24, 40, 10, 1, 0)]:
        labels = (np.arange(count) % 2).astype(int)
        rows = rounded(rng.normal(size=(count, width)) * scale + shift + np.outer(labels, rng.normal(size=width)), 4)
        model = LogisticRegression(C=c, solver="lbfgs", tol=1e-12, max_iter=100_000).fit(rows, labels)
        cases.append(
            {
                "rows": rows.ravel().tolist(),
                "labels": labels.tolist(),
                "c": c,
                "weights": model.coef_[0].tolist(),
                "bias": model.intercept_[0],
                "differenceOfMeans": (rows[labels == 1].mean(0) - rows[labels == 0].mean(0)).tolist(),
            }
        )
    return cases


def calibration_cases(rng):
    cases = []
    for count, sharpness in [(30, 0.5), (200, 2), (20, 50)]:
        labels = rng.integers(0, 2, count)
        labels[:2] = [0, 1]
        scores = rounded((rng.normal(size=count) + 1.5 * (labels - 0.5)) * sharpness, 4)
        probabilities = rounded(1 / (1 + np.exp(-scores)), 6)
        bins = np.minimum((probabilities * 10).astype(int), 9)
        error = sum(
            abs(probabilities[bins == b].mean() - labels[bins == b].mean()) * (bins == b).mean()
            for b in range(10)
            if (bins == b).any()
        )
        a, b = _sigmoid_calibration(scores, labels)
        cases.append(
            {
                "scores": scores.tolist(),
                "labels": labels.tolist(),
                "probabilities": probabilities.tolist(),
                "brier": brier_score_loss(labels, probabilities),
                "expectedError": error,
                # scikit-learn writes 1 / (1 + exp(a s + b)).
                "platt": {"slope": -a, "intercept": -b},
            }
        )
    return cases


def line_cases(rng):
    cases = []
    for count in [2, 10, 64]:
        x = rounded(rng.normal(size=count))
        y = rounded(1.7 * x - 0.4 + rng.normal(size=count))
        fit = stats.linregress(x, y)
        explained = LinearRegression().fit(x[:, None], y).score(x[:, None], y)
        cases.append({"x": x.tolist(), "y": y.tolist(), "slope": fit.slope, "intercept": fit.intercept, "explained": explained})
    return cases


def bootstrap_case(rng):
    """Scores of 40 pairs: scipy resamples pairs, as the statistic takes both rows of a pair."""
    pairs = 40
    negative, positive = rng.normal(size=pairs), rng.normal(size=pairs) + 1.1
    scores = rounded(np.concatenate([negative, positive]))
    labels = np.repeat([0, 1], pairs)

    def statistic(indices):
        indices = np.asarray(indices, dtype=int)
        rows = np.concatenate([indices, indices + pairs])
        return roc_auc_score(labels[rows], scores[rows])

    result = stats.bootstrap(
        (np.arange(pairs),), statistic, n_resamples=20_000, method="percentile", vectorized=False, rng=np.random.default_rng(5)
    )
    interval = result.confidence_interval
    return {"scores": scores.tolist(), "labels": labels.tolist(), "low": interval.low, "high": interval.high}


def permutation_case(rng):
    """Paired differences: scipy swaps within pairs, and knows all 2^10 ways."""
    negative, positive = rng.normal(size=10), rng.normal(size=10) + 0.7
    negative, positive = rounded(negative), rounded(positive)
    result = stats.permutation_test(
        (positive, negative),
        lambda a, b: np.mean(a) - np.mean(b),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
    )
    return {"positive": positive.tolist(), "negative": negative.tolist(), "p": result.pvalue}


def cholesky_case(rng):
    factor = rng.normal(size=(6, 6))
    matrix = rounded(factor @ factor.T + np.eye(6))
    b = rounded(rng.normal(size=6))
    return {"matrix": matrix.ravel().tolist(), "b": b.tolist(), "x": np.linalg.solve(matrix, b).tolist()}


def random_case():
    """xoshiro128** as its authors wrote it down, started from SHA-256 of seed and name."""
    state = list(struct.unpack("<4I", hashlib.sha256(b"7\nreference").digest()[:16]))
    mask = 0xFFFFFFFF

    def rotate(value, by):
        return ((value << by) | (value >> (32 - by))) & mask

    def following():
        result = (rotate((state[1] * 5) & mask, 7) * 9) & mask
        shifted = (state[1] << 9) & mask
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = rotate(state[3], 11)
        return result

    return [((following() >> 5) * 2**26 + (following() >> 6)) / 2**53 for _ in range(8)]


def main():
    rng = np.random.default_rng(20)
    reference = {
        "auroc": auroc_cases(rng),
        "summary": summary_cases(rng),
        "proportion": proportion_cases(),
        "beta": beta_cases(),
        "holm": holm_cases(),
        "logistic": logistic_cases(rng),
        "calibration": calibration_cases(rng),
        "line": line_cases(rng),
        "bootstrap": bootstrap_case(rng),
        "permutation": permutation_case(rng),
        "cholesky": cholesky_case(rng),
        "random": random_case(),
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(reference) + "\n")


main()
