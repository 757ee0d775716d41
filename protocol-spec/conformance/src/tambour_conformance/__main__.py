import sys

from tambour_conformance.cli import main

sys.exit(main())
