package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/prometheus/common/version"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hint"
)

// Program is a command line program: its grammar, and the texts that differ between programs.
type Program struct {
	// Name is the command's name; About begins its --help, and Foot ends it.
	Name, About, Foot string
	// Grammar is a pointer to a struct with kong's tags.
	Grammar any
	Vars    kong.Vars
	// Bind has the values that commands may take as arguments, besides a context.
	Bind []any
	// Args rewrites the arguments before they are parsed; may be nil.
	Args func([]string) []string
	// Moved names the program that now has a command of that name.
	Moved map[string]string
	// Silent has the exit codes of errors that are not printed.
	Silent map[error]int
}

// Main runs one command line and returns its exit code: 0, 1 after an error, or one of
// p.Silent.
func (p *Program) Main(ctx context.Context, args []string, out, errOut io.Writer) (code int) {
	vars := kong.Vars{"version": version.Print(p.Name)}
	for k, v := range p.Vars {
		vars[k] = v
	}
	parser, err := kong.New(p.Grammar,
		kong.Name(p.Name),
		kong.Description(p.About),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Summary: false}),
		kong.Help(p.help),
		vars,
		kong.Writers(out, errOut),
		kong.Exit(func(n int) { panic(exitNow(n)) }),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(p.Bind...),
	)
	if err != nil {
		PrintError(errOut, p.Name, err)
		return 1
	}
	defer func() {
		if r := recover(); r != nil {
			n, ok := r.(exitNow)
			if !ok {
				panic(r)
			}
			code = int(n)
		}
	}()
	return p.run(parser, args, errOut)
}

// exitNow unwinds from kong's --help and --version, which want to exit with this code.
type exitNow int

func (p *Program) run(parser *kong.Kong, args []string, errOut io.Writer) int {
	if len(args) > 0 && args[0] == "help" {
		args = append(slices.Clone(args[1:]), "--help")
	}
	if p.Args != nil {
		args = p.Args(args)
	}
	k, err := parser.Parse(args)
	if err != nil {
		PrintError(errOut, p.Name, hint.Add(err, "%s", p.hint(args, err)))
		return 1
	}
	err = k.Run()
	if err == nil {
		return 0
	}
	for silent, code := range p.Silent {
		if errors.Is(err, silent) {
			return code
		}
	}
	PrintError(errOut, p.Name, err)
	return 1
}

// hint returns advice for a command line that is not understood.
func (p *Program) hint(args []string, err error) string {
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		if node := parse.Context.Selected(); node != nil {
			return fmt.Sprintf("%s %s --help lists its flags and shows an example", p.Name, node.Path())
		}
	}
	if len(args) > 0 && p.Moved[args[0]] != "" {
		return fmt.Sprintf("%s has this command: %[1]s %s", p.Moved[args[0]], strings.Join(args, " "))
	}
	return p.Name + " --help lists the commands; " + p.Name + " COMMAND --help shows an example"
}

// PrintError prints the error of a program and, on another line, what to do.
func PrintError(w io.Writer, program string, err error) {
	text := strings.TrimPrefix(err.Error(), "trimtab: ")
	if mistakes := (config.Errors)(nil); errors.As(err, &mistakes) {
		// One per line first, as compilers do, then the number.
		fmt.Fprintln(w, mistakes.Error())
		text = fmt.Sprintf("read configuration: %d mistakes", len(mistakes))
		if len(mistakes) == 1 {
			text = "read configuration: 1 mistake"
		}
	}
	fmt.Fprintln(w, program+": error:", text)
	if h := hint.Of(err); h != "" {
		fmt.Fprintln(w, program+": hint:", h)
	}
}

// help is kong's help with the command's example below it.
func (p *Program) help(options kong.HelpOptions, k *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, k); err != nil {
		return fmt.Errorf("print help: %w", err)
	}
	node := k.Selected()
	if node == nil {
		fmt.Fprintln(k.Stdout, "\n"+p.Foot)
		return nil
	}
	if e, ok := node.Target.Addr().Interface().(interface{ Example() string }); ok {
		fmt.Fprintf(k.Stdout, "\nExample:\n  %s\n", strings.ReplaceAll(e.Example(), "\n", "\n  "))
	}
	return nil
}
