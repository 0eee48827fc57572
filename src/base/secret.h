/* Removes secrets from a command line before it is stored. The module uses string.h and strings.h alone, since the library that is loaded into recorded
 * programs contains it too. */
#ifndef OPSCOPE_BASE_SECRET_H
#define OPSCOPE_BASE_SECRET_H

#include <stddef.h>

/* Overwrites each secret in `words` with "***" and returns how many bytes are left of the `n`. `words` are the words of a command line with a NUL behind
 * each, as /proc/PID/cmdline has them; the last NUL may be missing. A secret is
 *   - the value of an option, variable or key whose name says so, also inside the text of a shell:
 *                                                             --api-key=VALUE, --hf-token VALUE, DB_PASSWORD="VALUE", {"token": "VALUE"};
 *   - the password of a URL:                                  https://user:VALUE@host;
 *   - what follows "Bearer " or "Basic ", in any case;
 *   - a word that begins as keys of well-known services do:   hf_..., sk-..., ghp_..., AKIA....
 * A secret under a name that does not say so stays. So does an option's value in the next word when that value begins with '-'. A secret shorter than 3 bytes becomes as many stars. */
size_t secret_mask(char *words, size_t n);

#endif
