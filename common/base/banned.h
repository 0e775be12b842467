/* Forbidden functions, force-included into every file: using one is a compile error that names the replacement. */
#ifndef COMMON_BASE_BANNED_H
#define COMMON_BASE_BANNED_H

/* Their declarations come first, so that the macros below cannot hit them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Unbounded writes. Use memcpy with a checked length, struct str and arenas, or snprintf. */
#undef strcpy
#define strcpy(...) banned_strcpy_use_memcpy_with_a_checked_length
#undef strcat
#define strcat(...) banned_strcat_use_memcpy_with_a_checked_length
#undef strncpy
#define strncpy(...) banned_strncpy_use_memcpy_with_a_checked_length
#undef sprintf
#define sprintf(...) banned_sprintf_use_snprintf

/* Hidden state, shared between threads. */
#undef strtok
#define strtok(...) banned_strtok_use_parse_h
#undef gmtime
#define gmtime(...) banned_gmtime_use_gmtime_r
#undef localtime
#define localtime(...) banned_localtime_use_gmtime_r

/* Errors that cannot be told from a value. */
#undef atoi
#define atoi(...) banned_atoi_use_parse_h
#undef atol
#define atol(...) banned_atol_use_parse_h

/* Predictable numbers, and a shell. */
#undef rand
#define rand(...) banned_rand_use_RAND_bytes
#undef system
#define system(...) banned_system_use_posix_spawn

#endif
