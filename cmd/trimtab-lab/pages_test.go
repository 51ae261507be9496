package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// typed are the command lines of the pages that begin with trimtab-lab.
func typed(t *testing.T) (lines []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "Makefile"} {
		names, err := filepath.Glob("../../" + pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v, %v", pattern, names, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Base(name) == "CHANGELOG.md" {
				continue
			}
			lines = append(lines, regexp.MustCompile("trimtab-lab (?:sim|calc|bench) [^`\n|>;#)]*").FindAllString(string(b), -1)...)
		}
	}
	return lines
}

// unknown returns the first command or flag of a line that there is not.
func unknown(node *kong.Node, line string) string {
	words := regexp.MustCompile(`(?:'[^']*'|[^\s'])+`).FindAllString(line, -1)[1:]
	for _, w := range words {
		if flag, _, _ := strings.Cut(w, "="); strings.HasPrefix(flag, "--") {
			if !slices.ContainsFunc(node.Flags, func(f *kong.Flag) bool { return "--"+f.Name == flag || f.Tag.Negatable != "" && "--no-"+f.Name == flag }) {
				return w
			}
			continue
		}
		if len(node.Children) == 0 {
			continue
		}
		i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == w })
		if i < 0 {
			if regexp.MustCompile(`^[a-z]+$`).MatchString(w) {
				return w
			}
			return "" // a placeholder
		}
		node = node.Children[i]
	}
	return ""
}

func TestEveryCommandLineOfThePagesHasOnlyCommandsAndFlagsThatExist(t *testing.T) {
	k, err := kong.New(&grammar{}, kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{"trimtab-lab sim cilantr": "cilantr", "trimtab-lab sim rose --sed 2": "--sed", "trimtab-lab bench drf --no-rounds --repeat 2": ""} {
		if got := unknown(k.Model.Node, line); got != want {
			t.Errorf("%s: found %q unknown, want %q", line, got, want)
		}
	}
	lines := typed(t)
	for _, line := range lines {
		if w := unknown(k.Model.Node, line); w != "" {
			t.Errorf("%s: there is no %q", line, w)
		}
	}
	if len(lines) < 40 {
		t.Errorf("only %d command lines were found", len(lines))
	}
}

func TestEveryVisibleCommandHasHelpAndAnExampleThatStartsWithIt(t *testing.T) {
	k, err := kong.New(&grammar{}, kong.Name("trimtab-lab"), kong.Vars{"version": ""})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range k.Model.Leaves(true) {
		var out strings.Builder
		code := Main(t.Context(), append(strings.Fields(n.Path()), "--help"), &out, &out)
		_, example, _ := strings.Cut(out.String(), "\nExample:\n")
		if code != exitDone || n.Help == "" || !strings.Contains(example, "trimtab-lab "+n.Path()) {
			t.Errorf("trimtab-lab %s --help: code %d, help %q, example %q", n.Path(), code, n.Help, example)
		}
		for _, v := range n.Values() {
			if v.Help == "" {
				t.Errorf("trimtab-lab %s: %s has no help", n.Path(), v.Summary())
			}
		}
	}
}

func TestEveryExampleOfObjectivesPrintsWhatThePageShows(t *testing.T) {
	page, err := os.ReadFile("../../docs/objectives.md")
	if err != nil {
		t.Fatal(err)
	}
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	bin, tried := t.TempDir(), 0
	if err := os.Symlink(self, filepath.Join(bin, "trimtab-lab")); err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?s)```console\n\\$ ([^\n]*)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(m[1], "trimtab-lab ") {
			continue
		}
		tried++
		cmd := exec.CommandContext(t.Context(), "bash", "-c", m[1])
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != m[2] {
			t.Errorf("%s: %v\n%s", m[1], err, out)
		}
	}
	if tried < 2 {
		t.Errorf("%d examples were tried", tried)
	}
}
