"""How hypothesis looks for examples: afresh on people's machines, always the same ones in CI, where CI is set."""

import os

from hypothesis import settings

settings.register_profile("everywhere", deadline=None)
settings.register_profile("ci", settings.get_profile("everywhere"), derandomize=True, database=None, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "everywhere")
