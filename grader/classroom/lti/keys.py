"""Manage this course's own key. A platform knows its public half and so recognises the course."""

import os
from pathlib import Path

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from grader.classroom.atomic_file import PLACE

BITS = 2048
ALGORITHM = "RS256"  # the one that LTI 1.3 asks for


def path(root: Path) -> Path:
    return root / PLACE / "lti_key.pem"


def make(root: Path) -> rsa.RSAPrivateKey:
    """Return the key, made now if there is none. Only its owner can read the file."""
    place = path(root)
    if not place.exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=BITS)
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        place.parent.mkdir(parents=True, exist_ok=True)
        new = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(new, "wb") as file:
            file.write(key.private_bytes(serialization.Encoding.PEM, *form))
    return read(root)


def read(root: Path) -> rsa.RSAPrivateKey:
    try:
        return serialization.load_pem_private_key(path(root).read_bytes(), None)
    except FileNotFoundError:
        raise ValueError("key must be there, got none. Run python -m grader lti keys") from None


def public(key: rsa.RSAPrivateKey) -> dict:
    """Return the public half as a set of JSON web keys, the form that platforms read."""
    found = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {"keys": [found | {"kid": name(key), "use": "sig", "alg": ALGORITHM}]}


def name(key: rsa.RSAPrivateKey) -> str:
    """Return a short name of the key, the same for every reader."""
    numbers = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return numbers["n"][:16]
