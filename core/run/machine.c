/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run/run_impl.h"

sn_status sn_machine_create(const sn_topology *topology, const sn_machine_options *options,
                            sn_machine **out_machine) {
  sn_machine_options o;
  SN_TRY(sn_options_read(options, sizeof o, "sn_machine_create", &o));
  sn_machine *m = sn__calloc(1, sizeof *m);
  if (m == NULL) return sn_status_out_of_memory();
  m->test_seed = o.test_seed;
  sn__device_options device_options = {.test_seed = m->test_seed};
  sn_status status = sn_topology_copy(topology, &m->topology);
  sn__device **devices = NULL;
  if (status == SN_OK) {
    devices = sn__calloc((size_t)topology->n_devices, sizeof(sn__device *));
    status = devices == NULL ? sn_status_out_of_memory()
                             : sn__devices_create(m->topology, &device_options, devices);
  }
  if (status != SN_OK) {
    sn__free(devices);
    sn_machine_free(m);
    return status;
  }
  m->devices = devices;
  *out_machine = m;
  return SN_OK;
}

void sn_machine_free(sn_machine *m) {
  if (m == NULL) return;
  if (m->devices != NULL) sn__devices_free(m->devices, m->topology->n_devices);
  sn__free(m->devices);
  sn_topology_free(m->topology);
  sn__free(m);
}

const sn_topology *sn_machine_topology(const sn_machine *m) {
  return m->topology;
}
