#include "attn.h"

const char *attn_status_text(attn_status status)
{
	switch (status) {
#define X(name, text)                                                                                        \
	case ATTN_##name:                                                                                    \
		return text;
		ATTN_STATUS_MAP(X)
#undef X
	}
	return "unknown status";
}
