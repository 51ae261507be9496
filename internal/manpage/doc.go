// Package manpage prints the manual page of a kong program, in roff with the
// macros of man(7).
//
// The page is a function of the model alone: commands in the order of the
// grammar, each with arguments, flags and its example, between the sections
// that every page has. The same model and [Page] give the same bytes. Lines
// are wrapped by the reader, not here.
//
// It does not print hidden commands and flags.
//
//	err := manpage.Page{Name: "trimtab", Version: "1.0", Date: "2026-01-31"}.Write(os.Stdout, parser.Model)
package manpage
