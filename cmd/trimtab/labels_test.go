package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/goccy/go-yaml"
	"golang.org/x/net/html"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/dashboards/rulefile"
)

// hostileLabel makes one name as nobody should give one: whole attacks, and
// mixtures of what means something to HTML, PromQL, paths, terminals, YAML and
// those who read from right to left.
func hostileLabel(r *rand.Rand) string {
	whole := []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "'-alert(1)-'", "javascript:alert(1)", "{{.}}", "${7*7}", "</title><svg/onload=alert(1)>",
		`"} or up or {a="`, `x"}[1y]) or vector(0) #`, "$match", "{{ $labels.job }}", "../../../etc/passwd", "..", ".", "=", "..%2f..%2fetc", "%00", "%", "a/b/c", "//evil.example/x", `\\evil\share`,
		"?limit=-1", "#", "name?x=1&y=2", "\x1b[2J\x1b[31mred", "\x1b]0;title\x07", "line\nworkload  act  0", "\r\nSet-Cookie: a=b", "\u202egnp.exe", "\u2066x\u2069", "\u200b", "\ufeffx", "a\x00b",
		"- a: b", "&a *a", "!!binary x", "|\n x", "0x1f", "null", "~", "\u2028x\u2029", strings.Repeat("A", 253), "é", "e\u0301", "日本語", "\xff\xfe", "a\xc3", "trimtab.plan.>", "*", "$(reboot)", "`id`", "; rm -rf /", "constructor", "__proto__",
	}
	if r.IntN(3) == 0 {
		return strings.ToValidUTF8(whole[r.IntN(len(whole))], "\ufffd")
	}
	parts := append(slices.Clone(whole), "<", ">", "&", `"`, "'", "\\", "{", "}", "\n", "\t", "\r", "\x00", "\x7f", "\u0085", "\u202e", "\u202d", "\u2067", " ", "/", "%2e", "a", "é", "\U0001f600", "=~\".*\"", "<!--", "-->", "]]>", "<style>", "\x9b31m")
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	// What is no UTF-8 is none any more when it comes over the bus.
	return strings.ToValidUTF8(b.String()[:min(b.Len(), 250)], "\ufffd")
}

// TestHostileLabelsAreTextEverywhere holds for some here and for 10^4 in the
// integration tests.
func TestHostileLabelsAreTextEverywhere(t *testing.T) {
	t.Parallel()
	hostileLabels(t, 300)
}

func hostileLabels(t *testing.T, many int) {
	r := seed(t)
	const batch = 50
	for done := 0; done < many; done += batch {
		names := map[string]bool{}
		for len(names) < batch {
			names[hostileLabel(r)] = true
		}
		h := named(t, names)
		for name := range names {
			h.check(name)
			configured(t, name)
			ruled(t, name)
			if t.Failed() {
				t.Fatalf("with the name %q", name)
			}
		}
		h.overview()
		for name := range names {
			h.line(name)
			break
		}
	}
}

// display is a console whose workloads have such names, and every other text
// that comes from elsewhere is one too.
type display struct {
	*testing.T
	server *httptest.Server
	many   int
	// tags are the elements of the page of a workload with a harmless name.
	tags string
}

const harmless = "harmless"

func named(t *testing.T, names map[string]bool) *display {
	t.Helper()
	v := view.New(view.Config{Pool: "cpu", Resource: "cpu", Capacity: 8, Objective: "njc", Round: time.Hour})
	now := time.Now()
	p := &trimtab.Plan{Pool: "cpu", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: now, Lease: 10, Capacity: 8, Cause: trimtab.Cause{Kind: codes.CauseAlert}, Held: map[string]trimtab.Held{}}
	h := &trimtab.Holding{Host: "h", Time: now}
	add := func(name, text string) {
		performance := .5
		v.Observe(&trimtab.Estimate{Workload: name, Time: now, Performance: &performance, Model: text, Hold: &trimtab.Held{Code: codes.HeldOther, Text: text},
			Inputs: []trimtab.Input{{Name: text, Source: text, Missing: text}}, Curve: &trimtab.Curve{Level: .9, Knots: []trimtab.Knot{{Allocation: 1}}}})
		p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: p.Pool, Host: text, Workload: name, Resource: "cpu"}, Expect: trimtab.Units(1), Set: trimtab.Units(2), Mode: trimtab.Act,
			Why: trimtab.Reason{Summary: text, Binding: trimtab.Binding{Kind: codes.BindingGuard, Detail: text}, Model: text, Inputs: []trimtab.Input{{Name: text, Source: text}}, Alternatives: []trimtab.Alternative{{Why: text}}}})
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: name, Resource: "cpu"}, Knob: text, Now: trimtab.Units(1), Since: now})
	}
	for name := range names {
		add(name, name)
	}
	add(harmless, harmless)
	p.Cause = trimtab.Cause{Kind: codes.CauseAlert, Text: harmless}
	v.Observe(p)
	v.Observe(h)
	s := &display{T: t, server: httptest.NewServer(console.Handler(v, console.Options{})), many: len(names) + 1}
	t.Cleanup(s.server.Close)
	_, page := s.get("/workloads/" + harmless)
	s.tags = s.elements(page)
	return s
}

func (s *display) get(path string) (int, string) {
	s.Helper()
	resp, err := http.Get(s.server.URL + path)
	if err != nil {
		s.Errorf("%q: %v", path, err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.Error(err)
	}
	for key, values := range resp.Header {
		if strings.Contains(strings.Join(values, ""), "a=b") {
			s.Errorf("%q sets the header %s: %v", path, key, values)
		}
	}
	return resp.StatusCode, string(b)
}

// elements lists the tags of a page with the names of their attributes: what
// a name could only change by being more than text.
func (s *display) elements(page string) string {
	var b strings.Builder
	for z := html.NewTokenizer(strings.NewReader(page)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				s.Error(z.Err())
			}
			return b.String()
		}
		token := z.Token()
		if kind == html.TextToken {
			continue
		}
		if kind == html.CommentToken {
			b.WriteString("<!-->")
			continue
		}
		fmt.Fprintf(&b, "<%d %s", kind, token.Data)
		for _, a := range token.Attr {
			b.WriteString(" " + a.Key)
			v := strings.ToLower(strings.TrimSpace(a.Val))
			leads := a.Key == "href" || a.Key == "src" || a.Key == "action"
			if leads && (strings.HasPrefix(v, "//") || !strings.HasPrefix(v, "/") && !strings.HasPrefix(v, "#") && !strings.HasPrefix(v, "?")) {
				s.Errorf("%s=%q leads elsewhere", a.Key, a.Val)
			}
		}
		b.WriteString(">")
	}
}

// check asks for everything that there is on one workload.
func (s *display) check(name string) {
	s.Helper()
	segment, query := view.Path(name)
	code, page := s.get("/workloads/" + segment + "?" + query)
	if code != 200 {
		s.Errorf("page: %d", code)
	}
	if got := s.elements(page); got != s.tags {
		s.Errorf("the page has other elements than that of %s:\n%s\n%s", harmless, got, s.tags)
	}
	for _, part := range []string{"", "/history", "/decisions", "/patch"} {
		code, body := s.get("/api/v1/workloads/" + segment + part + "?" + query)
		var answer struct{ Workload string }
		if err := json.Unmarshal([]byte(body), &answer); code != 200 || err != nil || answer.Workload != name {
			s.Errorf("%s: %d, %v, %q", part, code, err, answer.Workload)
		}
	}
	var out bytes.Buffer
	c := explainCmd{clientFlags: clientFlags{URL: s.server.URL, Output: "text"}, Workload: name, History: 5}
	if err := c.Run(s.Context(), terminal{&out, &out}); err != nil {
		s.Errorf("explain: %v", err)
	}
	s.harmless(out.String())
}

// line asks on a whole command line, and with the name as a filter.
func (s *display) line(name string) {
	s.Helper()
	if code, body := s.get("/api/v1/status?q=" + url.QueryEscape(name)); code != 200 || !json.Valid([]byte(body)) {
		s.Errorf("filter %q: %d %s", name, code, body)
	}
	var out bytes.Buffer
	if code := Main(s.Context(), []string{"explain", "--url", s.server.URL, "--", name}, &out, &out); code != exitDone {
		s.Errorf("explain %q: code %d: %s", name, code, out.String())
	}
	s.harmless(out.String())
}

// harmless checks what a terminal would get.
func (s *display) harmless(out string) {
	s.Helper()
	for _, r := range out {
		if r != '\n' && !unicode.IsPrint(r) {
			s.Errorf("a terminal gets %q: %q", r, out)
			return
		}
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "workload  act") {
			s.Errorf("a name made a line of its own: %q", out)
		}
	}
}

// overview checks what shows all of them.
func (s *display) overview() {
	s.Helper()
	code, page := s.get("/")
	if n := strings.Count(s.elements(page), "<2 tr"); code != 200 || n != s.many+1 {
		s.Errorf("overview: %d, %d rows of %d and a head", code, n, s.many)
	}
	s.elements(page)
	for _, path := range []string{"/pipeline", "/api/v1/pipeline", "/api/v1/diff", "/api/v1/plan", "/api/v1/status"} {
		if code, body := s.get(path); code != 200 || strings.HasPrefix(path, "/api") && !json.Valid([]byte(body)) {
			s.Errorf("%s: %d", path, code)
		}
	}
	var out bytes.Buffer
	if code := Main(s.Context(), []string{"status", "--url", s.server.URL}, &out, &out); code != exitDone || strings.Count(out.String(), "\n") != s.many+2 {
		s.Errorf("status: code %d, %d lines of %d workloads: %s", code, strings.Count(out.String(), "\n"), s.many, out.String())
	}
	s.harmless(out.String())
}

// configured puts the name where a configuration takes one.
func configured(t *testing.T, name string) {
	t.Helper()
	quoted, err := yaml.Marshal(map[string]any{"workloads": []map[string]any{{"name": name, "match": map[string]any{
		"prometheus": map[string]string{"job": name}, "alert": map[string]string{"service": name}, "spans": map[string]string{"service.name": name}},
		"load": "sum(rate(requests_total{$match}[1m]))"}}})
	if err != nil {
		t.Error(err)
		return
	}
	// Accepted or refused, but never with a panic and never as something else.
	cfg, err := config.Parse("hostile.yaml", quoted)
	if err != nil {
		if !strings.Contains(err.Error(), "hostile.yaml:") {
			t.Errorf("a refusal without a place: %v", err)
		}
		return
	}
	w := cfg.Workloads[0]
	if w.Name != name || w.Match.Prometheus["job"] != name {
		t.Errorf("%q was read as %q, %q", name, w.Name, w.Match.Prometheus["job"])
	}
	got, err := w.Match.Expand(w.Load)
	if err != nil {
		return
	}
	// PromQL's strings are Go's.
	inner, ok := strings.CutPrefix(got, "sum(rate(requests_total{job=")
	inner, ok2 := strings.CutSuffix(inner, "}[1m]))")
	if text, err := strconv.Unquote(inner); !ok || !ok2 || err != nil || text != name {
		t.Errorf("%q became %s: %v", name, got, err)
	}
}

// ruled puts the name where a site's rules take one.
func ruled(t *testing.T, name string) {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{"groups": []map[string]any{{"name": name, "rules": []map[string]any{{
		"alert": "TrimtabTest", "expr": `trimtab_workload_held{workload=` + strconv.Quote(name) + "} > 0",
		"labels": map[string]string{"severity": name}, "annotations": map[string]string{"summary": name}}}}}})
	if err != nil {
		t.Error(err)
		return
	}
	count, problems := rulefile.Check([]rulefile.File{{Name: "hostile.yaml", Data: text}})
	// YAML ends a line by either; empty lines count.
	lines := bytes.Count(text, []byte("\n")) + bytes.Count(text, []byte("\r")) + 1
	for _, p := range problems {
		if p.File != "hostile.yaml" || p.Line < 1 || p.Line > lines {
			t.Errorf("%q: a problem without a place: %v", name, p)
		}
	}
	if count != 1 && len(problems) == 0 {
		t.Errorf("%q: %d rules and no problem", name, count)
	}
}
