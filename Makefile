# The course's daily commands; `make` alone lists them. Works with GNU make from 3.81 (macOS).
#
#   VENV=path    another environment folder: one holds several GB, so clones can share it. Each clone
#                still runs its own code, for PYTHONPATH stands before what is installed there.
#   PYTHON=name  the interpreter that makes the environment (default: the newest supported one found)
#   JOBS=number  processes that share the tests (default: 2)
#   LAB_ARGS=... options for JupyterLab, such as LAB_ARGS="--no-browser --port 8899"

VENV ?= .venv
override VENV := $(patsubst ~/%,$(HOME)/%,$(VENV))
PYTHON ?= $(shell unset PYTHONHOME; export PYTHONPATH="$(CURDIR)"; for name in "$(VENV)/bin/python" \
	python3.13 python3.12 python3.11 python3.10 python3 python; do \
	"$$name" -m course_utils.environment --fits >/dev/null 2>&1 && echo "$$name" && break; done)
RUN = "$(VENV)/bin/python"
JOBS ?= 2
SHARED = -n $(JOBS) --dist loadscope --no-loadscope-reorder# a file's tests stay in one process
export PYTHONPATH := $(CURDIR)
unexport PYTHONHOME

# $(call prepare,--with EXTRA): the environment, with what the lessons need and an extra
define prepare
@python="$(or $(PYTHON),python3)"; command -v "$$python" >/dev/null || { \
	echo "There is no $$python here. Install Python, or name it: make PYTHON=/path/to/python3"; \
	exit 1; }; "$$python" -m course_utils.environment "$(VENV)" $(1)
endef

.PHONY: help setup lab test test-long course notebooks sync figures clean

help:
	@echo 'make lab        set everything up and open JupyterLab on the first lesson'
	@echo 'make test       check style, run the tests, and compare what every notebook prints with what is'
	@echo '                stored, in two processes (JOBS=4 for four)'
	@echo 'make test-long  the rest: the notebooks once more, solved and on real text, 2000 random examples'
	@echo '                a property, 30 kills of a training, 30 changes of each chapter, shortened'
	@echo 'make course     run every notebook in order; show the time and peak memory of each;'
	@echo '                then build the course as a static site in _site/'
	@echo 'make notebooks  run every notebook and store its new outputs, and what each one cost'
	@echo 'make sync       write everything that is made from something else'
	@echo 'make figures    draw everything in figures/ again'
	@echo 'make setup      only make the environment (the commands above do so themselves)'
	@echo 'make clean      remove caches and built files, not the environment or your progress'

setup:
	$(call prepare)

lab: setup
	@$(RUN) -m course_utils lab $(LAB_ARGS)

test:
	$(call prepare,--with test)
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m pytest $(SHARED)

test-long:
	$(call prepare,--with test)
	@$(RUN) -m pytest $(SHARED) -m "long or deeper" --hypothesis-profile=long

course:
	$(call prepare,--with site)
	@$(RUN) -m course_utils course --costs build/costs.json
	@$(RUN) -m course_utils site --costs build/costs.json

notebooks: setup
	@$(RUN) -m course_utils course --write --costs course_utils/chapters/costs.json
	@$(RUN) -m course_utils sync

sync: setup
	@$(RUN) -m course_utils sync

figures: setup
	@$(RUN) -m course_utils figures

clean:
	@rm -rf .hypothesis .pytest_cache .ruff_cache _site build *.egg-info
	@find course_utils notebooks tests -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +
