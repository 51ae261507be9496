package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"

	"github.com/trimtab/trimtab/config"
)

// pages are those that people read, relative to the top.
func pages(t *testing.T) (all []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/*.md", "docs/runbooks/*.md"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		for _, name := range found {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(name), "../../"))
		}
	}
	return all
}

// typed are the command lines of a page: of its blocks, of indented text, and
// between backquotes.
func typed(t *testing.T, page string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks(t, page) {
		lines = append(lines, b.commands()...)
	}
	for _, m := range regexp.MustCompile("(?m)^    (?:\\$ )?((?:trimtab|make|go) .*)$|`((?:trimtab|make|go) [^`\n]*)`").FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, m[1]+m[2])
	}
	comment := regexp.MustCompile(`(^|\s+)# .*$`)
	var each []string
	for _, line := range lines {
		for part := range strings.SplitSeq(comment.ReplaceAllString(line, ""), "; ") {
			for part := range strings.SplitSeq(part, " && ") {
				if part, _, _ = strings.Cut(part, " | "); strings.TrimSpace(part) != "" {
					each = append(each, strings.TrimSpace(part))
				}
			}
		}
	}
	return each
}

// wordsOf splits a command line at blanks outside of quotes.
func wordsOf(line string) []string {
	return regexp.MustCompile(`(?:"[^"]*"|'[^']*'|[^\s"'])+`).FindAllString(line, -1)
}

// unknownWord returns the first word of a trimtab command line that the program
// does not have: a command or a flag. Values are not looked at: pages write FILE.
func unknownWord(node *kong.Node, line string) string {
	flags := map[string]bool{}
	take := func(n *kong.Node) {
		for _, f := range n.Flags {
			flags["--"+f.Name] = true
			if f.Short != 0 {
				flags["-"+string(f.Short)] = true
			}
		}
	}
	take(node)
	below := true
	for _, w := range wordsOf(line)[1:] {
		w = strings.Trim(w, "[]")
		switch {
		case w == "--":
			return ""
		case strings.HasPrefix(w, "-") && len(w) > 1:
			below = false
			if name, _, _ := strings.Cut(w, "="); !flags[name] {
				return w
			}
		case below && len(node.Children) > 0:
			i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == w || slices.Contains(n.Aliases, w) })
			switch {
			case i >= 0:
				node = node.Children[i]
				take(node)
			case node.DefaultCmd != nil && strings.HasPrefix(w, ">"), !regexp.MustCompile(`^[a-z-]+$`).MatchString(w):
				return "" // a placeholder, or a redirection
			default:
				return w
			}
		}
	}
	return ""
}

func TestEveryCommandLineOfThePagesHasOnlyCommandsAndFlagsThatExist(t *testing.T) {
	k, err := kong.New(&grammar{}, kong.Name("trimtab"), kong.Vars{"version": "", "storage": ""}, kong.Writers(io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{"trimtab run --config.fil x": "--config.fil", "trimtab check confg": "confg", "trimtab plan -o json": "", "trimtab statsu": "statsu"} {
		if got := unknownWord(k.Model.Node, line); got != want {
			t.Errorf("%s: found %q unknown, want %q", line, got, want)
		}
	}
	targets, lines := made(t), 0
	for _, page := range pages(t) {
		for _, line := range typed(t, page) {
			line = strings.TrimPrefix(line, "./bin/")
			w := wordsOf(line)
			switch {
			case w[0] == "trimtab":
				if unknown := unknownWord(k.Model.Node, line); unknown != "" {
					t.Errorf("%s: %s: there is no %q", page, line, unknown)
				}
			case w[0] == "make" && len(w) > 1 && regexp.MustCompile(`^[a-z-]+$`).MatchString(w[1]):
				if !targets[w[1]] {
					t.Errorf("%s: %s: the Makefile has no such target", page, line)
				}
			case w[0] == "go" && len(w) > 1 && (w[1] == "test" || w[1] == "run"):
				if err := goCommand(w[2:]); err != nil {
					t.Errorf("%s: %s: %v", page, line, err)
				}
			default:
				continue
			}
			lines++
		}
	}
	if lines < 250 {
		t.Errorf("only %d command lines were found", lines)
	}
}

// goCommand looks whether the packages of a `go test` or `go run` are there, and
// whether -run and -bench select a test.
func goCommand(args []string) error {
	var dirs, patterns []string
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, "./") || a == ".":
			dirs = append(dirs, strings.TrimSuffix(a, "/..."))
		case (a == "-run" || a == "-bench") && i+1 < len(args):
			patterns = append(patterns, strings.Trim(args[i+1], `"'`))
		}
	}
	if len(dirs) == 0 {
		dirs = []string{"."} // go test -tags integration -run X ./dir stands the other way round in places
	}
	var names string
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join("../..", dir)); err != nil {
			return err
		}
		files, _ := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Example|Fuzz)\w*)\(`).FindAllStringSubmatch(string(b), -1) {
				names += m[1] + "\n"
			}
		}
	}
	for _, p := range patterns {
		top, _, _ := strings.Cut(p, "/")
		if top == "^$" || top == "." || strings.HasPrefix(top, "NAME") {
			continue
		}
		re, err := regexp.Compile(`(?m)^.*` + strings.Trim(top, "^$") + `.*$`)
		if err != nil {
			return err
		}
		if !re.MatchString(names) {
			return errors.New("no test has a name like " + p)
		}
	}
	return nil
}

// asConfig returns a block of YAML as a whole configuration of trimtab, or "" where
// it is a file of another program.
func asConfig(t *testing.T, b block, base string) string {
	t.Helper()
	var part map[string]any
	text := b.text
	if strings.HasPrefix(text, "    ") { // a knob of a workload
		text = "workloads:\n  - name: checkout\n" + text
	}
	if err := yaml.Unmarshal([]byte(text), &part); err != nil {
		t.Errorf("%s: %v", b, err)
		return ""
	}
	if inner, ok := part["config"].(map[string]any); ok { // values of the chart
		part = inner
	}
	_, manifest := part["apiVersion"]
	_, alertmanager := part["receivers"]
	_, job := part["tasks"]
	if manifest || alertmanager || job {
		return ""
	}
	if _, whole := part["pool"]; !whole {
		var under map[string]any
		if err := yaml.Unmarshal([]byte(base), &under); err != nil {
			t.Fatal(err)
		}
		part = laidOver(under, part)
	}
	whole, err := yaml.Marshal(part)
	if err != nil {
		t.Fatal(err)
	}
	return string(whole)
}

func TestEveryConfigurationOfThePagesIsRight(t *testing.T) {
	tried := 0
	for _, page := range pages(t) {
		base := readme(t)[0]
		if page == "README.md" {
			continue // TestEveryConfigurationOfTheReadmeIsRight
		}
		for _, b := range blocks(t, page) {
			if b.language != "yaml" {
				continue
			}
			text := asConfig(t, b, base)
			if text == "" {
				continue
			}
			if tried++; strings.Contains("\n"+b.text, "\npool:") {
				base = text // what the page shows after it is a part of it
			}
			if _, err := config.Parse(page, []byte(text)); err != nil {
				t.Errorf("%s: %v\n%s", b, err, text)
			}
		}
	}
	if tried < 12 {
		t.Errorf("only %d configurations were found", tried)
	}
}
