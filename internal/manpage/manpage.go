package manpage

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// Page has the contents of a manual page that the command-line model does not have.
type Page struct {
	Name, Version string
	// Date as 2006-01-31.
	Date string
	// Summary follows the name, in one line without a full stop.
	Summary string
	// Sections stand after the commands, in this order.
	Sections []Section
}

// Section is a list of terms with their meaning.
type Section struct {
	Title string
	Items []Item
}

// Item is one term with its meaning.
type Item struct{ Term, Text string }

// Write prints the page of section 1.
func (p Page) Write(w io.Writer, app *kong.Application) error {
	r := &roff{}
	// Not by macro: a reader of dates wants plain hyphens.
	fmt.Fprintf(r, ".TH %s 1 %q %q %q\n", strings.ToUpper(p.Name), p.Date, strings.TrimSpace(p.Name+" "+p.Version), "User Commands")
	r.macro("SH", "NAME")
	r.text(p.Name + ` \- ` + escape(p.Summary))
	r.macro("SH", "SYNOPSIS")
	r.text(`\fB` + p.Name + `\fP \fICOMMAND\fP [\fIFLAGS\fP] [\fIARGUMENTS\fP]`)
	r.macro("SH", "DESCRIPTION")
	r.prose(app.Help)
	r.macro("SH", "COMMANDS")
	for _, leaf := range app.Leaves(true) {
		r.command(p.Name, leaf)
	}
	r.macro("SH", "OPTIONS")
	r.text("Every command takes these.")
	r.flags(app.Flags)
	for _, s := range p.Sections {
		r.macro("SH", strings.ToUpper(s.Title))
		for _, i := range s.Items {
			r.item(`\fB`+escape(i.Term)+`\fP`, escape(i.Text))
		}
	}
	if _, err := io.WriteString(w, r.String()); err != nil {
		return fmt.Errorf("print manual page: %w", err)
	}
	return nil
}

// roff collects lines of the page.
type roff struct{ strings.Builder }

// macro writes a line with a request and its quoted arguments.
func (r *roff) macro(name string, args ...string) {
	r.WriteString("." + name)
	for _, a := range args {
		r.WriteString(` "` + strings.ReplaceAll(escape(a), `"`, `""`) + `"`)
	}
	r.WriteByte('\n')
}

// text writes lines that are escaped already.
func (r *roff) text(s string) {
	for line := range strings.SplitSeq(s, "\n") {
		// At the start of a line these would be requests.
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		r.WriteString(line + "\n")
	}
}

// prose writes plain text with blank lines between paragraphs.
func (r *roff) prose(s string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(s), "\n\n") {
		if i > 0 {
			r.macro("PP")
		}
		r.text(escape(paragraph))
	}
}

func (r *roff) item(term, text string) {
	r.macro("TP")
	r.text(term)
	if text == "" {
		text = `\&`
	}
	r.text(text)
}

// command writes one command: synopsis, help, arguments, flags, example.
func (r *roff) command(program string, n *kong.Node) {
	path := program + " " + n.Path()
	title := path
	for _, a := range n.Positional {
		title += " " + a.Summary()
	}
	r.macro("SS", title)
	r.prose(n.Help)
	for _, a := range n.Positional {
		r.item(`\fI`+escape(strings.Trim(a.Summary(), "[]"))+`\fP`, escape(a.Help))
	}
	for node := n; node.Parent != nil; node = node.Parent {
		r.flags(node.Flags)
	}
	e, ok := n.Target.Addr().Interface().(interface{ Example() string })
	if !ok {
		return
	}
	r.macro("PP")
	r.text("Example:")
	r.macro("PP")
	r.macro("RS", "4")
	r.macro("nf")
	r.text(escape(e.Example()))
	r.macro("fi")
	r.macro("RE")
}

func (r *roff) flags(flags []*kong.Flag) {
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		help := f.Help
		if len(f.Envs) > 0 {
			help += " Also set by " + strings.Join(f.Envs, ", ") + "."
		}
		r.item(`\fB`+escape(f.String())+`\fP`, escape(help))
	}
}

// escape escapes the characters that roff interprets.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "^", `\(ha`, "~", `\(ti`, "`", `\(ga`, "'", `\(aq`).Replace(s)
}
