// Package completion completes a command line in bash, zsh and fish.
//
// The shells know nothing of the grammar: a script of a few lines ([Script])
// hands the words typed so far to a hidden command of the program, which asks
// the kong model ([Complete]) and prints ([Answer.Print])
//
//	word TAB description     one line per candidate
//	:files or :dirs          the shell adds its own file names
//
// So every shell completes the same, and what is in the model is completed:
// commands, flags, the values of enums, files where an argument's type is
// path. A tag `complete:"NAME"` on an argument or flag asks the program itself
// ([Answer.Ask]).
//
// It does not expand variables, globs or aliases: the shells have done that.
//
//	a := completion.Complete(parser.Model.Node, []string{"explain", "che"})
//	err := a.Print(os.Stdout, "")
package completion
