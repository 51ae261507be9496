package config_test

import (
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
)

var update = flag.Bool("update", false, "rewrite testdata and docs")

// TestBadFilesAreAnsweredWithPlaceAndHint is promise U4.
func TestBadFilesAreAnsweredWithPlaceAndHint(t *testing.T) {
	const name = "testdata/bad.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	var files []txtar.File
	for _, f := range archive.Files {
		if base, ok := strings.CutSuffix(f.Name, ".want"); ok {
			want[base] = string(f.Data)
		} else {
			files = append(files, f)
		}
	}
	if len(files) < 100 {
		t.Errorf("%d bad files, promised 100", len(files))
	}
	var rewritten []txtar.File
	for _, f := range files {
		base := strings.TrimSuffix(f.Name, ".yaml")
		got := answer(t, f.Name, f.Data)
		if diff := cmp.Diff(want[base], got); diff != "" && !*update {
			t.Errorf("%s:\n%s\n(-want +got)\n%s", f.Name, f.Data, diff)
		}
		rewritten = append(rewritten, f, txtar.File{Name: base + ".want", Data: []byte(got)})
	}
	if *update {
		archive.Files = rewritten
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// answer parses data, which must fail, and returns the text of the errors
// after checking what holds for every one of them.
func answer(t *testing.T, name string, data []byte) string {
	t.Helper()
	c, err := config.Parse(name, data)
	if err == nil || c != nil {
		t.Errorf("%s: accepted", name)
		return ""
	}
	var list config.Errors
	if !errors.As(err, &list) || !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("%s: error is %T, want Errors that are ErrInvalid", name, err)
	}
	place := regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `:\d+:\d+: \S`)
	lines := strings.Count(string(data), "\n") + 1
	for i, e := range list {
		if !place.MatchString(e.Error()) || e.Line < 1 || e.Col < 1 || e.Line > lines {
			t.Errorf("%s: no place in %q", name, e.Error())
		}
		if e.Hint == "" {
			t.Errorf("%s: no hint in %q", name, e.Error())
		}
		if i > 0 && (e.Line < list[i-1].Line || e.Line == list[i-1].Line && e.Col < list[i-1].Col) {
			t.Errorf("%s: errors out of order", name)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%s: a secret is shown: %v", name, err)
	}
	return err.Error() + "\n"
}
