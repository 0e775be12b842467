/* What the machine allows: memory, open files, IPv6; and the sizes that follow from it. */
#ifndef SPOA_LAUNCHER_LIMITS_H
#define SPOA_LAUNCHER_LIMITS_H

#include "common/base/str.h"

/* The smallest memory limit of the control groups that proc_cgroup (/proc/self/cgroup) names below cgroup_root
 * (/sys/fs/cgroup), version 2 or 1, their parents included; physical_bytes when none is smaller. */
uint64_t limits_memory_bytes(const char *proc_cgroup, const char *cgroup_root, uint64_t physical_bytes);
uint64_t limits_physical_bytes(void);
/* Ordinary requests at once that fit into memory: one for 512 KiB, 1 to 10,000. */
uint64_t limits_max_inflight(uint64_t memory_bytes);

/* Raises this process's soft limit of open files to the hard one, children inherit it. Returns the limit in force. */
uint64_t limits_raise_fds(void);
/* HAProxy's maxconn for the two caps: both, and half as much again for connections that are kept open but idle; less where
 * that needs more than n_fds open files. has_hop: a client's connection passes on to another inside HAProxy. */
uint64_t limits_maxconn(uint64_t cap_ordinary, uint64_t cap_streams, bool has_hop, uint64_t n_fds);

/* A socket can be bound to all IPv6 addresses (and takes IPv4 on it). */
bool limits_has_ipv6(void);

#endif
