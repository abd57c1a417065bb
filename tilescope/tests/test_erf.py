"""The error function of many numbers is that of each."""

import math

import numpy as np

from tilescope.machine.erf import LAST, erf

X = np.concatenate(
    [
        3 * np.random.default_rng(0).standard_normal(20_000),
        10.0 ** np.random.default_rng(1).uniform(-300, 1, 10_000),
        [0.0, -0.0, np.inf, -np.inf, LAST, np.nextafter(LAST, 0), 1 / 128, 5e-324],
    ]
)


def test_it_is_as_exact_as_one_by_one():
    wanted = np.vectorize(math.erf)(X)
    np.testing.assert_allclose(erf(X), wanted, rtol=4e-16, atol=0)
    assert (np.signbit(erf(X)) == np.signbit(wanted)).all()


def test_it_is_not_a_number_where_its_argument_is_none():
    assert np.isnan(erf(np.array([np.nan])))
