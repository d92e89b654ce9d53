"""Handwritten digits: a two-layer perceptron is trained with NumPy and then recognises digits by Rulewright kernels.

The training is plain NumPy. The inference is two kernels, compiled for every device that is present here; the
predictions must be those of NumPy.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import rulewright as rw
from rulewright.runtimes import devices
from sklearn.datasets import load_digits

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]

HIDDEN = 32
TRAINED = 1297  # of 1797 images; the other 500 are never seen in training


class Network(NamedTuple):
    """Weights and biases of both layers."""

    w1: Floats
    b1: Floats
    w2: Floats
    b2: Floats

    def logits(self, images: Floats) -> Floats:
        """The scores of the ten digits, by NumPy."""
        scores: Floats = np.maximum(images @ self.w1 + self.b1, 0) @ self.w2 + self.b2
        return scores


def load() -> tuple[Floats, Labels, Floats, Labels]:
    """Images (8x8 pixels, 0 to 1) and labels to train with, then to test with."""
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = (digits.data[order] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int64)
    return images[:TRAINED], labels[:TRAINED], images[TRAINED:], labels[TRAINED:]


def train(images: Floats, labels: Labels, epochs: int = 60, batch: int = 32, rate: float = 0.1) -> Network:
    """Stochastic gradient descent on the cross entropy."""
    rng = np.random.default_rng(1)
    pixels, classes = images.shape[1], 10
    w1 = rng.normal(0, pixels**-0.5, (pixels, HIDDEN)).astype(np.float32)
    w2 = rng.normal(0, HIDDEN**-0.5, (HIDDEN, classes)).astype(np.float32)
    net = Network(w1, np.zeros(HIDDEN, np.float32), w2, np.zeros(classes, np.float32))
    targets = np.eye(classes, dtype=np.float32)[labels]
    for _ in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(images), batch):
            chosen = order[start : start + batch]
            x = images[chosen]
            hidden = np.maximum(x @ net.w1 + net.b1, 0)
            scores = np.exp(hidden @ net.w2 + net.b2)
            error = (scores / scores.sum(1, keepdims=True) - targets[chosen]) / len(chosen)
            below = (error @ net.w2.T) * (hidden > 0)
            for weights, gradient in zip(net, (x.T @ below, below.sum(0), hidden.T @ error, error.sum(0)), strict=True):
                weights -= rate * gradient
    return net


class Classifier:
    """The network's two layers as kernels for one device and one number of images."""

    def __init__(self, device: str, count: int, pixels: int) -> None:
        x, w1, b1 = rw.tensor("x", (count, pixels)), rw.tensor("w1", (pixels, HIDDEN)), rw.tensor("b1", (HIDDEN,))
        h, w2, b2 = rw.tensor("h", (count, HIDDEN)), rw.tensor("w2", (HIDDEN, 10)), rw.tensor("b2", (10,))
        self.first = rw.compile(rw.kernel(rw.relu(rw.einsum("ip,ph->ih", x, w1) + b1)), device=device)
        self.second = rw.compile(rw.kernel(rw.einsum("ih,hc->ic", h, w2) + b2), device=device)

    def logits(self, images: Floats, net: Network) -> Floats:
        hidden = self.first(x=images, w1=net.w1, b1=net.b1)
        return np.asarray(self.second(h=hidden, w2=net.w2, b2=net.b2), np.float32)


def main() -> int:
    images, labels, unseen, answers = load()
    net = train(images, labels)
    expected = net.logits(unseen).argmax(1)
    print(
        f"trained on {len(images)} images; NumPy recognises {np.mean(expected == answers):.1%} of {len(unseen)} others"
    )
    failed = False
    for device in devices.present():
        classifier = Classifier(device, *unseen.shape)
        classifier.logits(unseen, net)  # some drivers compile only when a kernel first runs
        begin = time.perf_counter()
        found = classifier.logits(unseen, net).argmax(1)
        elapsed = time.perf_counter() - begin
        same = bool(np.array_equal(found, expected))
        failed |= not same
        verdict = "the same predictions" if same else f"{np.sum(found != expected)} predictions differ"
        print(f"{device:12} {np.mean(found == answers):.1%}  {verdict}  {elapsed * 1e3:.2f} ms")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
