#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes images_train.h5 and images_test.h5 beside this file: the digits of make_data.py as images.

  make_images.py          needs scikit-learn and h5py; the result is committed, so nobody else needs to run it

The same 1,437 and 360 rows in the same order, and the same licence:
  /image    [rows, 8, 8] u8   ink 0..16
  /digit    [rows] u8         0..9
"""
import os
import h5py
import numpy as np
from sklearn.datasets import load_digits
from make_data import LICENCE


def write(path, images, labels):
    with h5py.File(path, "w", libver="earliest", track_order=False) as f:
        f.create_dataset("licence", data=np.bytes_(LICENCE))
        f.create_dataset("image", data=images.astype(np.uint8), chunks=(256, 8, 8), compression="gzip", shuffle=True)
        f.create_dataset("digit", data=labels.astype(np.uint8))


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    d = load_digits()
    write(os.path.join(here, "images_train.h5"), d.images[:1437], d.target[:1437])
    write(os.path.join(here, "images_test.h5"), d.images[1437:], d.target[1437:])
