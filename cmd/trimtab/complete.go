package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/completion"
)

// completeTimeout bounds how long a person who pressed TAB waits for a running
// trimtab.
const completeTimeout = 200 * time.Millisecond

// defaultURL is the address of a trimtab without configuration.
const defaultURL = "http://127.0.0.1:9600"

// completionCmd prints a shell's script.
type completionCmd struct {
	Shell string `arg:"" help:"bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Example is shown by --help.
func (completionCmd) Example() string {
	return "source <(trimtab completion bash)       # in ~/.bashrc\nsource <(trimtab completion zsh)        # in ~/.zshrc, after compinit\ntrimtab completion fish | source        # in ~/.config/fish/config.fish"
}

// Run prints the script.
func (c *completionCmd) Run(t terminal) error {
	script, err := completion.Script(c.Shell, "trimtab")
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(t.out, script)
	return err
}

// completeCmd answers the completion scripts of the shells.
type completeCmd struct {
	Line  string   `help:"All that was typed, program included."`
	Tail  string   `help:"What the shell takes for the word being typed."`
	Words []string `arg:"" optional:"" passthrough:"" help:"The words after the program's name."`
}

// Run prints the candidates.
func (c *completeCmd) Run(ctx context.Context, k *kong.Context, t terminal) error {
	words, tail := c.Words, ""
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if c.Line != "" {
		words, tail = completion.Split(c.Line)[1:], c.Tail
	} else if len(words) > 0 {
		tail = words[len(words)-1]
	}
	a := completion.Complete(k.Model.Node, words)
	if a.Ask != "" {
		a.Add(ask(ctx, a)...)
	}
	return a.Print(t.out, tail)
}

// ask returns candidates from a running trimtab; none if it does not answer in time.
func ask(ctx context.Context, a *completion.Answer) (items []completion.Item) {
	ctx, cancel := context.WithTimeout(ctx, completeTimeout)
	defer cancel()
	c := client.Client{URL: cmp.Or(a.Flags["url"], os.Getenv("TRIMTAB_URL"), defaultURL)}
	switch a.Ask {
	case "explained":
		if s, err := c.Status(ctx); err == nil {
			for i := range s.Workloads {
				items = append(items, completion.Item{Word: s.Workloads[i].Name, Help: s.Workloads[i].State})
			}
		}
		if j := c.Jobs(ctx); j != nil {
			for i := range j.Jobs {
				items = append(items, completion.Item{Word: j.Jobs[i].ID, Help: j.Jobs[i].State})
			}
		}
	case "job", "task":
		items = askJobs(ctx, c, a.Ask == "task")
	case "plan":
		if p, err := c.Plan(ctx); err == nil {
			items = append(items, completion.Item{Word: p.ID, Help: p.Cause.String()})
		}
	}
	return slices.DeleteFunc(items, func(i completion.Item) bool {
		return client.Printable(i.Word) != i.Word // not to be typed, and maybe not to be shown
	})
}

// askJobs returns the jobs that are known, or their tasks that are not over.
func askJobs(ctx context.Context, c client.Client, tasks bool) (items []completion.Item) {
	b, err := c.Batch(ctx)
	if err != nil {
		return nil
	}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		if !tasks {
			items = append(items, completion.Item{Word: j.Name, Help: j.State})
			continue
		}
		whole, err := c.BatchJob(ctx, j.Name)
		if err != nil {
			return items
		}
		for k := range whole.Tasks {
			items = append(items, completion.Item{Word: j.Name + "/" + whole.Tasks[k].Name, Help: whole.Tasks[k].State})
		}
	}
	return items
}
