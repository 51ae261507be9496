package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Lookup finds a program that may be beside the search path of plain users.
func Lookup(name, debian string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	path := filepath.Join("/usr/sbin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no %s here: apt-get install --no-install-recommends %s: %w", name, debian, err)
	}
	return path, nil
}

// BuildTrimtab builds trimtab into a file, with flags of go build.
func BuildTrimtab(ctx context.Context, file string, flags ...string) error {
	args := append(append([]string{"build"}, flags...), "-o", file, "github.com/trimtab/trimtab/cmd/trimtab")
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as `make build` does
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build trimtab: %w\n%s", err, out)
	}
	return nil
}

// Released are the flags of a build as releases have it, or of one that writes profiles.
func Released(profiles bool) []string {
	if profiles {
		return []string{"-tags", "profile"}
	}
	return []string{"-trimpath", "-ldflags", "-s -w -funcalign=16"}
}
