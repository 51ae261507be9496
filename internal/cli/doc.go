// Package cli has what the commands of trimtab and trimtab-lab have in common: the frame of
// a program, flags with a range, answers as text, JSON or YAML, and progress of long runs.
package cli
