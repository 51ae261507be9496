// Package cli has the common parts of the commands of trimtab and trimtab-lab: the frame of a
// program, flags with a range, answers as text, JSON or YAML, and progress of long runs.
package cli
