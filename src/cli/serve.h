/* What the commands that serve share. */
#ifndef OPSCOPE_CLI_SERVE_H
#define OPSCOPE_CLI_SERVE_H

#include "cli/cli.h"
#include "serve/serve.h"

/* --port=arg, ended by cli_usage when it is none. */
uint16_t cli_port(const char *arg);

/* Prints the address and serves until SIGINT, SIGTERM or SIGHUP; the exit status. */
int cli_serve(const struct serve_options *o);

#endif
