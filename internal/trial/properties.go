package trial

import "flag"

// Some returns few in `make test`, and all in `make integration`: for a test whose cases cost
// much CPU time and are alike.
func Some[T any](few, all T) T {
	if integration {
		return all
	}
	return few
}

// Properties makes n the number of cases of each property of a test binary, instead of
// rapid's 100, unless -rapid.checks says more or less, as `make torture` does, or the tests
// are those of `make integration`. It is for packages whose properties play whole lives;
// call it in TestMain before the tests run.
func Properties(n string) error {
	flag.Parse()
	given := integration
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		return nil
	}
	return flag.Set("rapid.checks", n)
}
