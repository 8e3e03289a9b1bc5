/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Plain symbols under Windows' names, for names.cpp. */
void *CreateEventW(void *security, int manual, int set, const int *name)
{
    (void)security, (void)manual, (void)set, (void)name;
    return (void *)42;
}
unsigned WaitForSingleObject(void *object, unsigned milliseconds)
{
    (void)milliseconds;
    return object == (void *)42 ? 42 : 1;
}
unsigned GetLastError(void) { return 43; }
int CloseHandle(void *object) { return object != 0; }

int other(void)
{
    void *event = CreateEventW(0, 0, 0, 0);
    return CloseHandle(event) && GetLastError() == 43 ? (int)WaitForSingleObject(event, 0) : 0;
}
