#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes digits_train.h5 and digits_test.h5 beside this file, from scikit-learn's copy of the UCI optical digits.

  make_data.py            needs scikit-learn and h5py; the result is committed, so nobody else needs to run it

The 1,797 images are 8 x 8 with ink 0..16, in the order of the original set: the first 1,437 rows train, the
last 360 test (other writers). Each row has three views of one image and its label:
  /profile  [rows, 16] u8     ink summed by row (8) then by column (8)
  /strokes  values [N, 8] u8  the columns that have ink, left to right, 8 pixels each; offsets [rows + 1] i64
  /pixels   values [N, 3] u8  x, y, ink of each inked pixel (a set); offsets [rows + 1] i64
  /digit    [rows] u8         0..9
"""
import os
import h5py
import numpy as np
from sklearn.datasets import load_digits

LICENCE = ("Optical Recognition of Handwritten Digits, E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, "
           "https://doi.org/10.24432/C50P49, CC BY 4.0; the test part of 1,797 digits, as scikit-learn ships it.")


def ragged(f, name, rows, width):
    offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    values = np.concatenate(rows).astype(np.uint8).reshape(-1, width)
    g = f.create_group(name)
    g.create_dataset("values", data=values, chunks=(min(4096, len(values)), width), compression="gzip", shuffle=True)
    g.create_dataset("offsets", data=offsets)


def write(path, images, labels):
    with h5py.File(path, "w", libver="earliest", track_order=False) as f:
        f.create_dataset("licence", data=np.bytes_(LICENCE))
        profile = np.concatenate([images.sum(2), images.sum(1)], 1)
        f.create_dataset("profile", data=profile.astype(np.uint8), chunks=(256, 16), compression="gzip")
        ragged(f, "strokes", [im.T[im.sum(0) > 0] for im in images], 8)
        yx = [np.argwhere(im > 0) for im in images]
        ragged(f, "pixels", [np.stack([p[:, 1], p[:, 0], im[p[:, 0], p[:, 1]]], 1) for p, im in zip(yx, images)], 3)
        f.create_dataset("digit", data=labels.astype(np.uint8))


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    d = load_digits()
    images, labels = d.images.astype(np.int64), d.target
    write(os.path.join(here, "digits_train.h5"), images[:1437], labels[:1437])
    write(os.path.join(here, "digits_test.h5"), images[1437:], labels[1437:])
