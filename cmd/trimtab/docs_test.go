package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/bus/natsbus"
)

var update = flag.Bool("update", false, "rewrite the table in ARCHITECTURE.md")

func TestTheTableOfSubjectsAndStreamsIsTheOneInUse(t *testing.T) {
	const path, begin, end = "../../ARCHITECTURE.md", "<!-- table:bus -->\n", "<!-- end:bus -->"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", path)
	}
	want := "\n" + strings.TrimSpace(natsbus.Markdown()) + "\n\n"
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("%s is not what natsbus.Table says: run `make generate`", path)
	}
}
