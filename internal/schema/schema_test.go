package schema

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/schema")

func TestTheCommittedSchemasAreThoseOfTheTypes(t *testing.T) {
	t.Chdir("../..")
	files, err := Generate()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("docs", "schema")
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range files {
		path := filepath.Join(dir, name)
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the types say: run `make generate`", path)
		}
	}
	have, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(have) != len(files) {
		t.Errorf("docs/schema holds %d files, want %d (%v)", len(have), len(files), err)
	}
}
