package completion

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed scripts
var scripts embed.FS

// Shells returns the shells that there is a script for.
func Shells() []string { return []string{"bash", "fish", "zsh"} }

// Script returns the completion script of program for a shell. The program's
// hidden command `complete` answers it.
func Script(shell, program string) (string, error) {
	b, err := scripts.ReadFile("scripts/completion." + shell)
	if err != nil {
		return "", fmt.Errorf("find completion script: shell %q is none of %s", shell, strings.Join(Shells(), ", "))
	}
	return strings.ReplaceAll(string(b), "PROGRAM", program), nil
}
