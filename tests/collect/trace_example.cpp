// The example of the docs is C and C++.
#include "../../docs/examples/trace.c"
