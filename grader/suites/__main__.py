import sys

from grader.suites.command import main

sys.exit(main(sys.argv[1:]))
