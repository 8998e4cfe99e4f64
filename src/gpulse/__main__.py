"""python -m gpulse."""

import sys

from .cli.main import main

sys.exit(main())
