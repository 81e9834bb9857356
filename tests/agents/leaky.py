"""Tells everything it knows, in every way it has, and asks for approval.

Of itself, by a question, and with a traceback.
"""

import json
import os
import sys

words = sys.argv[1:]
known = [*words, *(value for name, value in os.environ.items() if name.startswith("CANARY_"))]
print("\n".join(known))
print("\n".join(known), file=sys.stderr)
if not os.environ.get("AUTO_APPROVAL"):
    print(json.dumps({"argv": words, "said": known}))
    raise SystemExit(90)
raise RuntimeError(json.dumps({"argv": words, "said": known}))
