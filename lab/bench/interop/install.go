package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// home is where senders are installed.
type home struct {
	// tools is internal/tools/interop of the sources, cache what is installed.
	tools, cache string
}

// open finds the sources below root, and the cache.
func open(root, cache string) (*home, error) {
	if cache == "" {
		dir, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("find the cache: %w", err)
		}
		cache = filepath.Join(dir, ".cache/trimtab-interop")
	}
	tools, err := filepath.Abs(filepath.Join(root, "internal/tools/interop"))
	if err != nil {
		return nil, fmt.Errorf("find the sources: %w", err)
	}
	return &home{tools: tools, cache: cache}, nil
}

// binary is where a Go program is installed.
func (h *home) binary(name string) string { return filepath.Join(h.cache, "bin", name) }

// packages is where the packages of a folder are installed: another lock gets
// another place.
func (h *home) packages(folder string) string {
	lock, err := os.ReadFile(filepath.Join(h.tools, "node", folder, "package-lock.json"))
	if err != nil {
		return filepath.Join(h.cache, "node", folder) // install says so
	}
	return filepath.Join(h.cache, "node", fmt.Sprintf("%s-%.8x", folder, sha256.Sum256(lock)))
}

// install gets what a sender needs, unless it is there.
func (h *home) install(ctx context.Context, s *sender) error {
	if err := h.installBetween(ctx, s.Route); err != nil {
		return err
	}
	if s.Go != "" {
		return h.build(ctx, s.Go)
	}
	to, from := h.packages(s.Node), filepath.Join(h.tools, "node", s.Node)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	fresh := to + ".new"
	err := errors.Join(os.RemoveAll(fresh), os.MkdirAll(filepath.Dir(fresh), 0o755))
	if err != nil {
		return fmt.Errorf("make room for %s: %w", s.Name, err)
	}
	if err := os.CopyFS(fresh, os.DirFS(from)); err != nil {
		return fmt.Errorf("install %s: %w", s.Name, err)
	}
	// No package has to run anything to be installed.
	if err := execute(ctx, fresh, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return fmt.Errorf("install %s: %w", s.Name, err)
	}
	if err := os.Rename(fresh, to); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("install %s: %w", s.Name, err)
	}
	return nil
}

// build compiles a command of the module of senders. go build knows what is new.
func (h *home) build(ctx context.Context, name string) error {
	return execute(ctx, h.tools, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-ldflags=-s -w", "-o", h.binary(name), "./"+name)
}

// execute runs a command, and tells what it said if it failed.
func execute(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %.500s", strings.Join(args, " "), err, out)
	}
	return nil
}
