package manpage

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

type command struct {
	Path string `arg:"" help:"What to read."`
	Mode string `short:"m" help:".TH is no request here; nor is \\fB a font." env:"PROG_MODE"`
	None string `hidden:""`
}

func (command) Example() string { return "prog do it\n.so /etc/passwd\n'quoted' ~ ^ `x`" }

type grammar struct {
	Level string   `help:"For all."`
	Do    command  `cmd:"" help:"Does it.\n\nIn two paragraphs."`
	Not   struct{} `cmd:"" hidden:"" help:"Unseen."`
}

func page(t *testing.T) string {
	t.Helper()
	k, err := kong.New(&grammar{}, kong.Name("prog"), kong.Description("A program.\n\n.br is text."))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err = Page{Name: "prog", Version: "1.2", Date: "2026-01-31", Summary: "does - it", Sections: []Section{
		{"Files", []Item{{"/etc/prog", "Its file."}, {"'odd", ""}}},
	}}.Write(&b, k.Model)
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThePageHasEveryVisiblePartOfTheModelAndIsTheSameEachTime(t *testing.T) {
	got := page(t)
	for _, want := range []string{`.TH PROG 1 "2026-01-31" "prog 1.2"`, `.SS "prog do <path>"`, `\-m, \-\-mode=STRING`, "PROG_MODE", "In two paragraphs.", "prog do it", `.SH "FILES"`, `\-\-level`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, bad := range []string{"none", "Unseen", "\n.so", "\n.br", "\n'quoted", "\n.TH is"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is in\n%s", bad, got)
		}
	}
	if page(t) != got {
		t.Error("another page of the same model")
	}
}

func TestReadersOfManualPagesFindNothingToWarnOf(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prog.1")
	if err := os.WriteFile(file, []byte(page(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, reader := range [][]string{{"mandoc", "-Tlint", "-Wwarning", file}, {"groff", "-man", "-ww", "-Tascii", "-z", file}} {
		t.Run(reader[0], func(t *testing.T) {
			if _, err := exec.LookPath(reader[0]); err != nil {
				t.Skip(err)
			}
			if out, err := exec.Command(reader[0], reader[1:]...).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
