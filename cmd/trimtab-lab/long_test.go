package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/internal/cli"
)

func TestADirectoryThatCannotBeWrittenIsRefusedBeforeARunOfHours(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"sim", "cilantro", "--rounds", "100000", "--seeds", "10000"}, {"sim", "colocate"}, {"sim", "rose"}, {"sim", "microservices", "--seeds", "10000"}} {
		var b strings.Builder
		code := Main(t.Context(), append(args, "--plot", filepath.Join(file, "figures")), &b, &b)
		out := b.String()
		if code != exitError || !strings.Contains(out, "directory for figures") || !strings.Contains(out, "hint") {
			t.Errorf("%q: %d %s", args, code, out)
		}
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := cli.Plottable(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestAStopIsAnErrorThatSaysWhetherAnythingWasPrinted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	if err := cutShort(ctx, 0); err != nil {
		t.Error(err)
	}
	stop()
	for n, want := range []string{"nothing was finished", "only what was finished is printed"} {
		if err := cutShort(ctx, n); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d finished: %v", n, err)
		}
	}
}
