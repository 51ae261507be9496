package console

import (
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/trimtab/trimtab/docs"
)

// entry is one term of the glossary. ID is its anchor on the page.
type entry struct{ ID, Term, Meaning string }

// chapter is a section of the glossary.
type chapter struct {
	Title   string
	Entries []entry
}

// glossaryPage is the data of glossary.html.
type glossaryPage struct {
	Frame    frame
	Chapters []chapter
}

// glossary reads docs/glossary.md: sections of tables with the columns term, meaning,
// and words to avoid, which the page leaves out.
func glossary() (all []chapter) {
	for section := range strings.SplitSeq(docs.Glossary, "\n## ") {
		lines := strings.Split(section, "\n")
		c := chapter{Title: lines[0]}
		for _, line := range lines {
			cells := strings.Split(line, " | ")
			term, ok := strings.CutPrefix(cells[0], "| ")
			if !ok || len(cells) < 2 || term == "term" {
				continue
			}
			c.Entries = append(c.Entries, entry{anchor(term), term, plain(cells[1])})
		}
		if len(c.Entries) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// plain is Markdown without links and marks.
func plain(text string) string {
	linked := regexp.MustCompile(`\s*\(\[[^\]]*\]\([^)]*\)\)|\[([^\]]*)\]\([^)]*\)`)
	return strings.NewReplacer("`", "", "*", "").Replace(linked.ReplaceAllString(text, "$1"))
}

func anchor(term string) string {
	first, _, _ := strings.Cut(strings.ToLower(term), ",")
	return strings.ReplaceAll(first, " ", "-")
}

func (s *site) drawGlossary(w http.ResponseWriter, r *http.Request) {
	g := glossaryPage{Chapters: s.glossary}
	g.Frame = frame{Page: "glossary", Title: "Glossary · trimtab", JSON: "/api/v1/status", Script: "page.js", Now: time.Now()}
	s.render(w, http.StatusOK, "glossary.html", &g)
}

// term links a word to its entry in the glossary. label is shown; of is the entry, where that is
// another word.
func (s *site) term(label string, of ...string) (template.HTML, error) {
	id := anchor(label)
	if len(of) > 0 {
		id = anchor(of[0])
	}
	for _, c := range s.glossary {
		for _, e := range c.Entries {
			if e.ID == id {
				return template.HTML(fmt.Sprintf(`<a class="term" href="/glossary#%s" title="%s">%s</a>`, //nolint:gosec // All three are escaped.
					template.HTMLEscapeString(id), template.HTMLEscapeString(e.Meaning), template.HTMLEscapeString(label))), nil
			}
		}
	}
	return "", fmt.Errorf("find term %q: the glossary has none", id)
}
