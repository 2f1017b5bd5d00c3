/* SPDX-License-Identifier: Apache-2.0 */
#include "io/h5_lock.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void sn_hdf5_lock(void) {
  pthread_mutex_lock(&lock);
}

void sn_hdf5_unlock(void) {
  pthread_mutex_unlock(&lock);
}
