package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trimtab/trimtab/config"
)

// FuzzParse: any bytes give a configuration or Errors with places and hints,
// and what was accepted is accepted again as it is shown.
func FuzzParse(f *testing.F) {
	good, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(good) == 0 {
		f.Fatal("no good files")
	}
	for _, name := range good {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	archive, err := txtar.ParseFile("testdata/bad.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for i, file := range archive.Files {
		if i%20 == 0 { // few seeds keep the fuzzer quick
			f.Add(file.Data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("f", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("%v and %v", c, err)
		}
		var list config.Errors
		if err != nil && (!errors.As(err, &list) || len(list) == 0) {
			t.Fatalf("%T", err)
		}
		for _, e := range list {
			if e.Line < 1 || e.Col < 1 || e.Message == "" || e.Hint == "" {
				t.Errorf("%+v", e)
			}
		}
		if c == nil {
			return
		}
		for i := range c.Workloads {
			w := &c.Workloads[i]
			if w.SLO.Target() > 0 {
				if _, err := w.UtilityFunc(); err != nil {
					t.Errorf("accepted utility: %v", err)
				}
			}
			for _, q := range []string{w.Load, w.Performance, w.Requests, w.Allocation} {
				if _, err := w.Match.Expand(q); q != "" && err != nil {
					t.Errorf("accepted query: %v", err)
				}
			}
		}
		_ = c.Redacted()
	})
}
