/* A library of tensors of another version: what a container may have in place of ours. */

unsigned monarch_tensors_abi(void);
unsigned monarch_tensors_abi(void) { return 2; }
