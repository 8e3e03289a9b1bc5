/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Access rights that objects of every kind have. */
#ifndef NDWIN_RIGHTS_H
#define NDWIN_RIGHTS_H

/* <resolv.h> has an operation of this name. */
#undef DELETE
#define DELETE                   0x00010000
#define READ_CONTROL             0x00020000
#define WRITE_DAC                0x00040000
#define WRITE_OWNER              0x00080000
#define SYNCHRONIZE              0x00100000
#define STANDARD_RIGHTS_REQUIRED 0x000F0000
#define STANDARD_RIGHTS_READ     READ_CONTROL
#define STANDARD_RIGHTS_WRITE    READ_CONTROL
#define STANDARD_RIGHTS_EXECUTE  READ_CONTROL
#define STANDARD_RIGHTS_ALL      0x001F0000
#define SPECIFIC_RIGHTS_ALL      0x0000FFFF
#define MAXIMUM_ALLOWED          0x02000000

#endif /* NDWIN_RIGHTS_H */
