/* A shared object that is no plugin. */

int nothing_of_monarch(void);
int nothing_of_monarch(void) { return 0; }
