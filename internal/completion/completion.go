package completion

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Item is one candidate for the word being typed.
type Item struct {
	Word, Help string
}

// Answer has the possible replacements of the last word.
type Answer struct {
	Items []Item
	// Files and Dirs ask the shell for its own names.
	Files, Dirs bool
	// Ask is the kind of values that only the program knows, from the tag complete; "": none. The
	// caller adds them with [Answer.Add].
	Ask string
	// Flags are the values of flags that stand on the line.
	Flags map[string]string

	word, prefix string
}

// Complete returns the possible replacements of the last of words, which are those after the
// program's name; the last may be empty.
func Complete(app *kong.Node, words []string) *Answer {
	a := &Answer{Flags: map[string]string{}}
	if len(words) == 0 {
		words = []string{""}
	}
	a.word = words[len(words)-1]
	w := walker{node: app, answer: a}
	for _, word := range words[:len(words)-1] {
		w.step(word)
	}
	w.finish()
	return a
}

// walker follows the words through the model.
type walker struct {
	node   *kong.Node
	answer *Answer
	// pending is a flag whose value is the next word.
	pending *kong.Flag
	// positional counts the arguments of node that were given.
	positional int
	// literal is set after "--", command where another program's words begin.
	literal, command bool
}

func (w *walker) step(word string) {
	switch {
	case w.command:
	case w.pending != nil:
		w.answer.Flags[w.pending.Name] = word
		w.pending = nil
	case word == "--" && !w.literal:
		w.literal = true
	case strings.HasPrefix(word, "-") && len(word) > 1 && !w.literal:
		w.flag(word)
	default:
		w.argument(word)
	}
}

func (w *walker) flag(word string) {
	name, value, given := strings.Cut(word, "=")
	f := w.find(name)
	switch {
	case f == nil:
	case given:
		w.answer.Flags[f.Name] = value
	case !f.IsBool() && !f.IsCounter():
		w.pending = f
	}
}

// find returns the flag of node or its parents by --name or -n.
func (w *walker) find(name string) *kong.Flag {
	for _, group := range w.node.AllFlags(false) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

func (w *walker) argument(word string) {
	if w.positional == 0 && !w.literal {
		for _, c := range w.node.Children {
			if c.Name == word {
				w.node = c
				return
			}
		}
	}
	if v := w.value(); v != nil && v.PassthroughMode != kong.PassThroughModeNone {
		w.command = true
	}
	w.positional++
}

// value is the next positional argument, or nil.
func (w *walker) value() *kong.Value {
	args := w.node.Positional
	switch n := len(args); {
	case w.positional < n:
		return args[w.positional]
	case n > 0 && args[n-1].IsCumulative():
		return args[n-1]
	}
	return nil
}

// finish fills the answer for the word being typed.
func (w *walker) finish() {
	a := w.answer
	name, _, given := strings.Cut(a.word, "=")
	switch {
	case w.command:
		a.Files = true
	case w.pending != nil:
		a.values(w.pending.Value, w.pending.PlaceHolder)
	case strings.HasPrefix(a.word, "-") && given && !w.literal:
		if f := w.find(name); f != nil {
			a.prefix = name + "="
			a.values(f.Value, f.PlaceHolder)
		}
	case strings.HasPrefix(a.word, "-") && !w.literal:
		w.flags()
	default:
		w.commands()
	}
}

func (w *walker) flags() {
	for _, group := range w.node.AllFlags(true) {
		for _, f := range group {
			w.answer.Add(Item{"--" + f.Name, f.Help})
		}
	}
}

func (w *walker) commands() {
	if w.positional == 0 && !w.literal {
		for _, c := range w.node.Children {
			if !c.Hidden {
				w.answer.Add(Item{c.Name, c.Help})
			}
		}
	}
	if v := w.value(); v != nil {
		w.answer.values(v, "")
		w.answer.Files = w.answer.Files || v.PassthroughMode != kong.PassThroughModeNone
	} else if len(w.node.Children) == 0 && w.answer.word == "" {
		w.flags()
	}
}

// values adds the candidates that the value's type defines.
func (a *Answer) values(v *kong.Value, placeholder string) {
	switch {
	case v.Tag.Has("complete"):
		a.Ask = v.Tag.Get("complete")
	case v.Enum != "":
		for _, e := range v.EnumSlice() {
			a.Add(Item{e, ""})
		}
	case v.Tag.Type == "existingdir" || v.Tag.Type == "path" && placeholder == "DIR":
		a.Dirs = true
	case v.Tag.Type == "path" || v.Tag.Type == "existingfile":
		a.Files = true
	}
}

// Add adds the candidates that begin with the typed text.
func (a *Answer) Add(items ...Item) {
	for _, i := range items {
		i.Word = a.prefix + i.Word
		if strings.HasPrefix(i.Word, a.word) && i.Word != "" && !strings.ContainsAny(i.Word, "\t\r\n") {
			a.Items = append(a.Items, i)
		}
	}
}

// Print writes the answer for a script. tail is what the shell counts as the word being typed,
// when that is less than the whole word: bash also breaks words at "=" and ":".
func (a *Answer) Print(w io.Writer, tail string) error {
	cut := 0
	if strings.HasSuffix(a.word, tail) {
		cut = len(a.word) - len(tail)
	}
	var b strings.Builder
	for _, i := range a.Items {
		help, _, _ := strings.Cut(i.Help, "\n")
		fmt.Fprintf(&b, "%s\t%s\n", i.Word[cut:], strings.ReplaceAll(help, "\t", " "))
	}
	if a.Dirs {
		b.WriteString(":dirs\n")
	} else if a.Files {
		b.WriteString(":files\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print candidates: %w", err)
	}
	return nil
}

// Split splits the typed text into words, as a shell would, including the unfinished word at the
// end. Quotes and backslashes are removed.
func Split(line string) []string {
	words, word := []string{}, strings.Builder{}
	var quote rune
	escaped, open := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, open = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	return append(words, word.String())
}
