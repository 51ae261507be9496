package planner_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePlannerWithoutItsSubPackagesHasAtMost3500Lines(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		lines += bytes.Count(b, []byte("\n"))
	}
	if lines == 0 || lines > 3500 {
		t.Errorf("%d lines", lines)
	}
}
