package main

import (
	"context"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/client"
)

type reportCmd struct {
	URL    string `help:"Address of the running trimtab." default:"http://127.0.0.1:9600" env:"TRIMTAB_URL"`
	Since  string `help:"Start of the report: a time such as 2026-01-02T15:04:05Z, or how long ago, such as 24h or 7d. At most 7 days are kept." default:"7d" placeholder:"WHEN"`
	Output string `short:"o" help:"Form of the output: ${enum}." enum:"text,markdown,html,json,yaml" default:"text"`
}

// Example is shown by --help.
func (reportCmd) Example() string {
	return "trimtab report --since 24h\ntrimtab report --since 7d -o html > report.html"
}

// Run asks and prints.
func (c *reportCmd) Run(ctx context.Context, t terminal) error {
	r, err := client.Client{URL: c.URL, Terminal: c.Output == "text"}.Report(ctx, c.Since)
	if err != nil {
		return err
	}
	switch c.Output {
	case "markdown":
		printMarkdown(t.out, r.Document())
		return nil
	case "html":
		return printHTML(t.out, r.Document())
	}
	return cli.Print(t.out, c.Output, r, func(w io.Writer) { printDocument(w, r.Document()) })
}

// printDocument prints a document for a terminal.
func printDocument(w io.Writer, d view.Document) {
	fmt.Fprintln(w, d.Title)
	for _, text := range d.Lead {
		fmt.Fprintln(w, text)
	}
	for _, s := range d.Sections {
		fmt.Fprintf(w, "\n%s\n", strings.ToUpper(s.Title))
		for _, text := range s.Text {
			fmt.Fprintln(w, text)
		}
		if len(s.Rows) > 0 {
			cli.Table(w, append([][]string{s.Head}, s.Rows...))
		}
	}
}

// printMarkdown prints a document as Markdown.
func printMarkdown(w io.Writer, d view.Document) {
	plain := strings.NewReplacer("\\", "\\\\", "|", "\\|", "<", "&lt;", "&", "&amp;", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "\n", " ", "\r", " ")
	row := func(cells []string) {
		for _, c := range cells {
			fmt.Fprintf(w, "| %s ", plain.Replace(c))
		}
		fmt.Fprintln(w, "|")
	}
	fmt.Fprintf(w, "# %s\n", plain.Replace(d.Title))
	for _, text := range d.Lead {
		fmt.Fprintf(w, "\n%s\n", plain.Replace(text))
	}
	for _, s := range d.Sections {
		fmt.Fprintf(w, "\n## %s\n", plain.Replace(s.Title))
		for _, text := range s.Text {
			fmt.Fprintf(w, "\n%s\n", plain.Replace(text))
		}
		if len(s.Rows) == 0 {
			continue
		}
		fmt.Fprintln(w)
		row(s.Head)
		fmt.Fprintln(w, strings.Repeat("|---", len(s.Head))+"|")
		for _, r := range s.Rows {
			row(r)
		}
	}
}

// printHTML prints a document as one file that needs no other.
func printHTML(w io.Writer, d view.Document) error {
	const page = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{{.Title}}</title>
<style>:root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}th,td{text-align:left;padding:.3rem .8rem .3rem 0;border-bottom:1px solid #8886}div{overflow-x:auto}</style></head>
<body><h1>{{.Title}}</h1>
{{range .Lead}}<p>{{.}}</p>
{{end}}{{range .Sections}}<h2>{{.Title}}</h2>
{{range .Text}}<p>{{.}}</p>
{{end}}{{if .Rows}}<div><table><thead><tr>{{range .Head}}<th scope="col">{{.}}</th>{{end}}</tr></thead><tbody>
{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</tbody></table></div>
{{end}}{{end}}</body></html>
`
	t, err := template.New("report").Parse(page)
	if err == nil {
		err = t.Execute(w, d)
	}
	if err != nil {
		return fmt.Errorf("print report: %w", err)
	}
	return nil
}
