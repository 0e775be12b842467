/* A disk without room: whatever this process writes to a file fails. */
#ifndef TESTS_UNIT_FULL_DISK_H
#define TESTS_UNIT_FULL_DISK_H

/* Between the two no byte goes into any file; pipes and sockets are as ever. Nothing else may write meanwhile. */
void full_disk_begin(void);
void full_disk_end(void);

#endif
