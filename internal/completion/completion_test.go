package completion

import (
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// grammar has one of everything that is completed.
type grammar struct {
	Level string `help:"How much is said." enum:"debug,info" default:"info"`
	Show  struct {
		URL    string `help:"Whom to ask."`
		Output string `short:"o" help:"How to print." enum:"text,json" default:"text"`
		Quiet  bool   `short:"q" help:"Say less."`
		Name   string `arg:"" optional:"" complete:"name"`
	} `cmd:"" help:"Show\tone thing.\nMore about it."`
	Check struct {
		File struct {
			Path string `arg:"" type:"path"`
		} `cmd:""`
	} `cmd:""`
	Run struct {
		Dir     string   `type:"path" placeholder:"DIR"`
		Log     string   `type:"path" placeholder:"FILE"`
		Command []string `arg:"" optional:"" passthrough:""`
	} `cmd:""`
	Secret struct{} `cmd:"" hidden:""`
}

func model(t testing.TB) *kong.Node {
	k, err := kong.New(&grammar{}, kong.Name("prog"))
	if err != nil {
		t.Fatal(err)
	}
	return k.Model.Node
}

func TestWhatStandsOnTheLineDecidesWhatIsOffered(t *testing.T) {
	for _, c := range []struct {
		line, want string
	}{
		{"", "show check run"},
		{"s", "show"},
		{"se", ""},
		{"x", ""},
		{"check ", "file"},
		{"check file ", ":files"},
		{"--level ", "debug info"},
		{"--level=d", "--level=debug"},
		{"--level debug sh", "show"},
		{"show -", "--help --level --url --output --quiet"},
		{"show --o", "--output"},
		{"show -o j", "json"},
		{"show -o json ", "?name"},
		{"show -q ", "?name"},
		{"show --url http://h ", "?name"},
		{"show one --out", "--output"},
		{"show -- --", "?name"},
		{"show --unknown ", "?name"},
		{"run --dir ", ":dirs"},
		{"run --log ", ":files"},
		{"run --dir=x", ":dirs"},
		{"run make --dir ", ":files"},
		{"run -- make sh", ":files"},
	} {
		a := Complete(model(t), Split(c.line))
		var got []string
		for _, i := range a.Items {
			got = append(got, i.Word)
		}
		if a.Ask != "" {
			got = append(got, "?"+a.Ask)
		}
		if a.Dirs {
			got = append(got, ":dirs")
		} else if a.Files {
			got = append(got, ":files")
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%q: %q, want %q", c.line, s, c.want)
		}
	}
}

func TestFlagsOnTheLineAreKnownToWhoAnswersAQuestion(t *testing.T) {
	for _, line := range []string{"show --url http://h:1 ", "show --url=http://h:1 ", "show a --url=http://h:1 b"} {
		if got := Complete(model(t), Split(line)).Flags["url"]; got != "http://h:1" {
			t.Errorf("%q: url is %q", line, got)
		}
	}
}

func TestAnAnswerIsOneLineACandidateWithoutWhatTheShellHasAlready(t *testing.T) {
	for _, c := range []struct{ line, tail, want string }{
		{"sh", "sh", "show\tShow one thing.\n"},
		{"--level=d", "d", "debug\t\n"},
		{"--level=", "", "debug\t\ninfo\t\n"},
		{"--level=d", "--level=d", "--level=debug\t\n"},
		{"show a:b", "b", "bc\tthe name\n"},
	} {
		a := Complete(model(t), Split(c.line))
		if a.Ask != "" {
			a.Add(Item{"a:bc", "the name"}, Item{"other", ""}, Item{"a:b\nrm", "two lines"})
		}
		var b strings.Builder
		if err := a.Print(&b, c.tail); err != nil || b.String() != c.want {
			t.Errorf("%q %q: %q, want %q (%v)", c.line, c.tail, b.String(), c.want, err)
		}
	}
}

func TestALineIsSplitAsAShellWould(t *testing.T) {
	for line, want := range map[string][]string{
		"":                     {""},
		"a b":                  {"a", "b"},
		"a b ":                 {"a", "b", ""},
		`a "b c" d\ e 'f\g' "`: {"a", "b c", "d e", `f\g`, ""},
		`a '' b`:               {"a", "", "b"},
		"  a\t b":              {"a", "b"},
	} {
		if got := Split(line); !cmp.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestThereIsAScriptForEachShellAndForNoOther(t *testing.T) {
	for _, shell := range Shells() {
		s, err := Script(shell, "prog")
		if err != nil || !strings.Contains(s, "_prog") || strings.Contains(s, "PROGRAM") {
			t.Errorf("%s: %v\n%s", shell, err, s)
		}
	}
	if _, err := Script("../doc.go", "prog"); err == nil || !strings.Contains(err.Error(), "bash, fish, zsh") {
		t.Error(err)
	}
}

func FuzzNoLineIsTooStrangeToComplete(f *testing.F) {
	for _, s := range []string{"", "show -o ", "run -- '", `\`, "--level=\x00", "- -- ---"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := Split(line)
		if len(words) == 0 {
			t.Fatal("no word")
		}
		a := Complete(model(t), words)
		a.Add(Item{line, line})
		var b strings.Builder
		if err := a.Print(&b, words[len(words)-1]); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "\n"); n > len(a.Items)+1 {
			t.Errorf("%d lines for %d candidates", n, len(a.Items))
		}
		if slices.ContainsFunc(a.Items, func(i Item) bool { return !strings.HasPrefix(i.Word, words[len(words)-1]) }) {
			t.Error("a candidate does not go on from what was typed")
		}
	})
}
