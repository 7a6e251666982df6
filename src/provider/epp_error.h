/* epp_error.h - a plugin's error object, as the failure that it means.
 *
 * Specification, 4.9: the number decides, `data.sdk_code` may say more where it
 * is one of a fixed set. Message and suggestion are the plugin's own words,
 * cleaned and without secrets.
 *
 * Memory: none that is kept.
 */
#ifndef ABX_EPP_ERROR_H
#define ABX_EPP_ERROR_H

#include "base/err.h"
#include "data/json.h"
#include "provider/epp_voice.h"

/* Returns false, with *err. */
ABX_FN bool epp_error_set(const EppVoice *voice, const Json *error, Err *err);

/* The error says that the plugin has no such method. */
ABX_FN bool epp_error_is_no_method(const Json *error);

#endif
