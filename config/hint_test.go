package config_test

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/trimtab/trimtab/config"
)

// mistake is one error of a wrong file, at a place in its text.
type mistake struct {
	*config.Error
	text string
	at   int // bytes before it
}

// mistakesOf returns what Parse says of a text.
func mistakesOf(name, text string) config.Errors {
	_, err := config.Parse(name, []byte(text))
	var list config.Errors
	if err != nil && !errors.As(err, &list) {
		return config.Errors{{Message: err.Error()}}
	}
	return list
}

// placed finds the byte at which a mistake stands.
func placed(e *config.Error, text string) mistake {
	m := mistake{Error: e, text: text}
	for range e.Line - 1 {
		m.at += strings.IndexByte(text[m.at:], '\n') + 1
	}
	for i := range text[m.at:] {
		if e.Col--; e.Col < 1 {
			m.at += i
			break
		}
	}
	return m
}

// scalar returns how long the key or value is that stands at the mistake.
func (m mistake) scalar() int {
	rest := m.text[m.at:]
	if rest != "" {
		if end, ok := map[byte]string{'"': `"`, '\'': "'", '[': "]", '{': "}"}[rest[0]]; ok && strings.Contains(rest[1:], end) {
			return strings.Index(rest[1:], end) + 2
		}
	}
	line := m.text[strings.LastIndexByte(m.text[:m.at], '\n')+1 : m.at]
	ends := `\n|: | #`
	if strings.Count(line, "{")+strings.Count(line, "[") > strings.Count(line, "}")+strings.Count(line, "]") {
		ends = `[,}\]\n]|: | #`
	}
	if i := regexp.MustCompile(ends).FindStringIndex(rest); i != nil {
		return i[0]
	}
	return len(rest)
}

// with returns the text with what stands at the mistake replaced.
func (m mistake) with(value string) string {
	return m.text[:m.at] + value + m.text[m.at+m.scalar():]
}

// replaced replaces the next old at or behind the mistake.
func (m mistake) replaced(old, with string) []string {
	if old == "" || !strings.Contains(m.text[m.at:], old) {
		return nil
	}
	return []string{m.text[:m.at] + strings.Replace(m.text[m.at:], old, with, 1)}
}

// without removes the key at the mistake, or the key whose value stands there.
func (m mistake) without() (all []string) {
	start := strings.LastIndexByte(m.text[:m.at], '\n') + 1
	end := strings.IndexByte(m.text[m.at:]+"\n", '\n') + m.at
	line := m.text[start:end]
	// A pair of a flow mapping, with the comma before or behind it.
	for _, shape := range []string{`[\w.-]+: (?:"[^"]*"|[^,{}\[\]]*)`, `[\w.-]+: (?:\{[^{}]*\}|\[[^\[\]]*\])`, `[\w.-]+: \{.*\}`} {
		for _, pair := range regexp.MustCompile(shape).FindAllStringIndex(line, -1) {
			if at := m.at - start; pair[0] <= at && at <= pair[1] {
				before, after := line[:pair[0]], line[pair[1]:]
				if rest, ok := strings.CutPrefix(after, ", "); ok {
					after = rest
				} else {
					before = strings.TrimSuffix(before, ", ")
				}
				all = append(all, m.text[:start]+before+after+m.text[end:])
			}
		}
	}
	return append(all, m.text[:start]+m.text[min(end+1, len(m.text)):])
}

// added puts a pair into the mapping in which the mistake stands.
func (m mistake) added(pair string) []string {
	if strings.HasPrefix(m.text[m.at:], "{}") {
		return []string{m.text[:m.at] + "{" + pair + "}" + m.text[m.at+2:]}
	}
	if strings.HasPrefix(m.text[m.at:], "{") {
		return []string{m.text[:m.at] + "{" + pair + ", " + m.text[m.at+1:]}
	}
	start := strings.LastIndexByte(m.text[:m.at], '\n') + 1
	if open := strings.LastIndexByte(m.text[start:m.at], '{'); open >= 0 {
		open += start + 1
		return []string{m.text[:m.at] + pair + ", " + m.text[m.at:], m.text[:open] + pair + ", " + m.text[open:]}
	}
	indent := strings.Repeat(" ", m.at-start)
	return []string{m.text[:m.at] + pair + "\n" + indent + m.text[m.at:]}
}

// named are the values that a hint offers: "200ms, 30s or 1h".
func named(list string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(strings.ReplaceAll(list, " or ", ","), " and ", ","), func(r rune) bool { return r == ',' })
}

// rule says how a hint that names what to write is carried out: each way that its
// words allow, of which one must do.
type rule struct {
	hint  *regexp.Regexp
	apply func(m mistake, found []string) []string
}

func each(m mistake, values []string) (all []string) {
	word := regexp.MustCompile(`^(?:scheme "(.+)" cannot|unknown variable (\S+)$)`).FindStringSubmatch(m.Message)
	for _, v := range values {
		v = strings.TrimSpace(v)
		if word != nil { // a part of what stands there
			all = append(all, m.replaced(word[1]+word[2], v)...)
			continue
		}
		all = append(all, m.with(v))
	}
	return all
}

func value(m mistake, found []string) []string { return []string{m.with(found[1])} }

func rules() []rule {
	wrong := regexp.MustCompile(`"([^"]+)"|^unknown (?:function|variable) (\S+)`)
	re := regexp.MustCompile
	return []rule{
		{re(`did you mean "(.+)"\?`), func(m mistake, f []string) []string {
			w := wrong.FindStringSubmatch(m.Message)
			if w == nil {
				return value(m, f)
			}
			return m.replaced(w[1]+w[2], f[1])
		}},
		{re(`^swap them: min: (\S+), max: (\S+)$`), func(m mistake, f []string) []string {
			// The mistake stands at either of both.
			from := max(0, strings.LastIndex(m.text[:m.at+len(f[2])], "min: "+f[2]))
			pair := strings.Replace(m.text[from:], "min: "+f[2], "min: "+f[1], 1)
			return []string{m.text[:from] + strings.Replace(pair, "max: "+f[1], "max: "+f[2], 1)}
		}},
		{re(`^write (\S+): use letters`), func(m mistake, f []string) []string {
			return []string{m.with(f[1]), strings.Replace(m.text, strconv.Quote(wrong.FindStringSubmatch(m.Message)[1]), f[1], 1)}
		}},
		{re(`^write it without the scheme: (\S+)$|^write the number alone: (\S+)$|^write (\d\S*|\[\S+\])$|number alone: (\S+)$`), func(m mistake, f []string) []string { return each(m, []string{f[1] + f[2] + f[3] + f[4]}) }},
		{re(`: \S+ is (-?[\d.]+(?:h|MiB)?)(?:$|;)`), value},
		{re(`^add a unit: (\S+) or (\S+)$`), func(m mistake, f []string) []string { return each(m, f[1:]) }},
		{re(`^remove the quotes: (\S+)$`), value},
		{re(`write at least (\d\S*)$`), value},
		{re(`^write it relative to the cgroup root: (\S+)$`), value},
		{re(`^write true or false, without quotes$`), func(m mistake, _ []string) []string { return each(m, []string{"true", "false"}) }},
		{re(`^(?:the default is (\S+)|(\S+) is the default(?:$|,))`), func(m mistake, f []string) []string { return []string{m.with(f[1] + f[2])} }},
		{re(`^(?:use|write) one of: (.+)$`), func(m mistake, f []string) []string {
			if strings.HasPrefix(m.Message, "unknown key") {
				return nil // which key was meant is not said
			}
			return each(m, named(f[1]))
		}},
		{re(`^indent with spaces`), func(m mistake, _ []string) []string { return []string{strings.ReplaceAll(m.text, "\t", "  ")} }},
		{re(`remove the line ---$`), func(m mistake, _ []string) []string { return []string{m.text[:m.at]} }},
		{re(`^add the range: (.+)(\[\w+\])$`), func(m mistake, f []string) []string {
			// In a flow mapping brackets need quotes.
			quoted := strings.Replace(m.text, "rate("+f[1]+")", strconv.Quote("rate("+f[1]+f[2]+")"), 1)
			return append(m.replaced(f[1], f[1]+f[2]), quoted)
		}},
		{re(`such as ([a-z_]+: \S+)$`), func(m mistake, f []string) []string {
			if strings.Contains(m.Hint, "to the pool") {
				return []string{strings.Replace(m.text, "pool: {", "pool: {"+f[1]+", ", 1)}
			}
			return m.added(f[1])
		}},
		{re(`such as (\d.*?)(?:$|, or remove| for )`), func(m mistake, f []string) []string { return each(m, named(f[1])) }},
		{re(`^write ([a-z_]+): ([a-z0-9-]+|\{.*?\})(?:$|, or|: | in )`), func(m mistake, f []string) []string {
			if f[1] == "objective" {
				return []string{f[1] + ": " + f[2] + "\n" + m.text, m.with(f[2])}
			}
			if f[2] == "text" || f[2] == "value" || strings.Contains(f[2], "…") || re(`[A-Z]{4}`).MatchString(f[2]) {
				return nil // it shows the form, and no value
			}
			return append(m.added(f[1]+": "+f[2]), m.with(f[2]))
		}},
		{re(`at the top of the file$`), func(m mistake, _ []string) []string {
			return []string{`prometheus: {url: "http://127.0.0.1:9090"}` + "\n" + m.text}
		}},
		{re(`(?:remove the key|or remove it$|leave it out|leave (?:unit|step) out|: remove one$|remove the section)`), func(m mistake, _ []string) []string { return m.without() }},
	}
}

// TestEveryHintThatNamesWhatToWriteMendsItsMistake carries out hints by the letter:
// the mistake must be gone and no other have come.
func TestEveryHintThatNamesWhatToWriteMendsItsMistake(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/bad.txtar")
	if err != nil {
		t.Fatal(err)
	}
	single, mended, form := 0, 0, 0
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".want") {
			continue
		}
		text := string(f.Data)
		before := mistakesOf(f.Name, text)
		if len(before) == 1 {
			single++
		} else if strings.HasPrefix(f.Name, "tried-") {
			t.Errorf("%s: one mistake is answered with %d:\n%v", f.Name, len(before), before)
		}
		for _, e := range before {
			tries, ok := carriedOut(*e, text)
			switch {
			case !ok:
				form++
			case slices.ContainsFunc(tries, func(after string) bool { return mends(f.Name, e, after, len(before)) }):
				mended++
			default:
				t.Errorf("%s: the hint does not mend it:\n%v\n%s\ntried:\n%s\n%v", f.Name, e, text, strings.Join(tries, "\n"), mistakesOf(f.Name, strings.Join(tries[:min(1, len(tries))], "")))
			}
		}
	}
	t.Logf("%d files with one mistake; %d hints carried out, %d that name no value", single, mended, form)
	if single < 300 || mended < 200 {
		t.Errorf("%d files with one mistake and %d hints carried out, want 300 and 200", single, mended)
	}
}

// carriedOut returns the texts that a hint asks for; ok is false where it names none.
func carriedOut(e config.Error, text string) (tries []string, ok bool) {
	for _, r := range rules() {
		f := r.hint.FindStringSubmatch(e.Hint)
		if f == nil {
			continue
		}
		copied := e
		tries = append(tries, r.apply(placed(&copied, text), f)...)
	}
	return tries, len(tries) > 0
}

// mends reports whether a mistake is gone from a text, and no other came.
func mends(name string, e *config.Error, text string, before int) bool {
	if strings.TrimSpace(text) == "" {
		return true // without a file the defaults hold
	}
	after := mistakesOf(name, text)
	return len(after) < before && !slices.ContainsFunc(after, func(o *config.Error) bool {
		return o.Line == e.Line && o.Message == e.Message
	})
}
