package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// avoided are the words that the glossary's last column has.
func avoided(t *testing.T) (words []string) {
	t.Helper()
	b, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.Contains(line, "---") || strings.TrimSpace(cells[3]) == "not" {
			continue
		}
		for word := range strings.SplitSeq(cells[3], ",") {
			if word = strings.TrimSpace(word); word != "" {
				words = append(words, word)
			}
		}
	}
	if len(words) < 10 {
		t.Fatalf("the glossary avoids only %q", words)
	}
	return words
}

func TestUserTextsKeepToTheGlossary(t *testing.T) {
	texts := map[string]string{}
	for _, n := range leaves(t) {
		_, texts["trimtab "+n.Path()+" --help"] = say(t, append(strings.Fields(n.Path()), "--help")...)
	}
	pages, err := filepath.Glob("../../console/web/*.html")
	if err != nil {
		t.Fatal(err)
	}
	docs, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	runbooks, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range slices.Concat(pages, docs, runbooks, []string{"../../README.md"}) {
		if name := filepath.Base(page); name == "glossary.md" || name == "papers.md" {
			continue // the words themselves, and words of papers
		}
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(b)
	}
	for _, word := range avoided(t) {
		// Help wraps its lines.
		pattern := regexp.MustCompile(`(?i)\b` + strings.ReplaceAll(regexp.QuoteMeta(word), " ", `\s+`) + `\b`)
		for name, text := range texts {
			if at := pattern.FindStringIndex(text); at != nil {
				t.Errorf("%s says %q: %q", name, word, text[max(0, at[0]-60):min(len(text), at[1]+40)])
			}
		}
	}
}

func TestTheTermsOfTheGlossaryAreInOrderAndOnce(t *testing.T) {
	b, err := os.ReadFile("../../docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for section := range strings.SplitSeq(string(b), "\n## ") {
		last := ""
		for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+?) \|`).FindAllStringSubmatch(section, -1) {
			term := strings.ToLower(m[1])
			if term == "term" {
				continue
			}
			if term <= last || seen[term] {
				t.Errorf("%s stands after %s, or twice", term, last)
			}
			last, seen[term] = term, true
		}
	}
}
