package trial

import "flag"

// Properties makes n the number of cases of each property of a test binary, instead of
// rapid's 100, unless -rapid.checks says more or less, as `make torture` does. It is for
// packages whose properties play whole lives; call it in TestMain before the tests run.
func Properties(n string) error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return nil
	}
	return flag.Set("rapid.checks", n)
}
