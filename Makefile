# What a person types. The C++ side is CMake's (CMakePresets.json), the Python side pyproject.toml's; this file sets up
# what they need (tools/setup) and calls them. Everything is safe to repeat.

PREFIX ?= /usr/local
# Debian's compilers by full path: the plugin loads only into the compiler whose headers it was built with.
CC := /usr/bin/gcc
CXX := /usr/bin/g++
TESTS := OFF
CMAKE_FLAGS = -DIOSIG_TESTS=$(TESTS) -DCMAKE_C_COMPILER=$(CC) -DCMAKE_CXX_COMPILER=$(CXX) \
  $(if $(shell command -v ccache),-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
# Without these two ccache keeps no object that was compiled with a precompiled header, which is nearly all of them.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
# Clones of the repository share what ccache keeps (debug information then names the clone that compiled first).
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
# Nothing of the machine's own Python set-up reaches .venv.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
export PYTHONNOUSERSITE := 1
PYTHON := .venv/bin/python

.PHONY: build python lab demo test sanitized suites fuzz lint bench install uninstall package clean help

build: ## the command, its library, the GCC plugin: build/bin/iosig
	@tools/setup build
	@cmake --preset release --log-level=WARNING $(CMAKE_FLAGS) >/dev/null
	@cmake --build build
	@echo "built: build/bin/iosig"

python: ## the Python package and iosig-plot, in .venv
	@tools/setup build python
	@$(MAKE) --no-print-directory build
	@tools/install-python

lab: ## what lab/lab makes its storage of; then, as root: lab/lab up
	@tools/setup build lab
	@$(MAKE) --no-print-directory build

demo: ## the main job on this machine: annotated and unannotated programs on the best storage; results in demo/
	@$(MAKE) --no-print-directory python
	@$(PYTHON) examples/demo.py $(if $(FULL),--full)

test: ## every test: Python, and C++ under the sanitizers
	@tools/setup build python lab test
	@$(MAKE) --no-print-directory python TESTS=ON
	@$(PYTHON) tools/run_tests $(CMAKE_FLAGS) -DIOSIG_TESTS=ON

sanitized: ## only libiosig-preload.so with sanitizers, for tests/system/test_sanitized_preload.py
	@tools/setup build test
	@tools/fuzz --build iosig_preload || { [ $$? = 2 ] && \
	  cmake --preset asan --log-level=WARNING $(CMAKE_FLAGS) >/dev/null && \
	  cmake --build --preset asan --target iosig_preload; }

suites: ## pjdfstest and fsx with and without IOSIG, as root; needs Rust 1.85 (not part of test)
	@$(MAKE) --no-print-directory build
	@tools/suites

fuzz: ## every fuzzer, an hour each (SECONDS=3600); what they learn stays in build/fuzz
	@tools/setup build test
	@tools/fuzz --seconds $(or $(SECONDS),3600)

lint: ## format, clang-tidy, ruff, mypy, shellcheck, layers, tables of the docs
	@tools/setup build python test lab lint
	@$(MAKE) --no-print-directory python
	@tools/lint

bench: ## predicted against measured throughput on this machine, the time of a decision and of a compilation, containers, MTTDLs
	@tools/setup build python bench
	@$(MAKE) --no-print-directory python
	@cmake --preset release -DIOSIG_BENCH=ON --log-level=WARNING >/dev/null
	@cmake --build build --target bench_grid bench_decision bench_pattern bench_pattern_lookup bench_pattern_merge
	@$(PYTHON) bench/grid.py --quick --fresh
	@build/bin/bench_decision
	@build/bin/bench_pattern
	@build/bin/bench_pattern_lookup
	@build/bin/bench_pattern_merge
	@$(PYTHON) bench/replay.py --rounds 1 --bytes 16777216
	@$(PYTHON) bench/compile.py
	@$(PYTHON) bench/reliability.py

install: build ## into PREFIX (default /usr/local)
	@cmake --install build --prefix "$(patsubst ~/%,$(HOME)/%,$(PREFIX))" >/dev/null
	@printf '%s' "$(DESTDIR)" >build/install_manifest.txt.destdir
	@echo "installed: $(DESTDIR)$(PREFIX)/bin/iosig"

uninstall: ## removes what `make install` has put there last
	@DESTDIR="$(DESTDIR)" tools/uninstall build/install_manifest.txt

package: build ## build/packages: a tarball that runs wherever it is unpacked, and a Debian package
	@cd build && cpack >/dev/null && ls packages/*.tar.gz packages/*.deb

clean: ## what was built; .venv stays
	rm -rf build demo

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' Makefile | expand -t 18
